// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package sink is for programs that process NIXL telemetry events themselves,
// instead of, or in addition to, exporting metrics. A [Sink] receives every
// event, with its agent, time, category, name and value.
//
// NIXL has exporter plug-ins for this: shared libraries that an agent loads. A
// Sink is a Go interface with one method, in the process that has the events:
//
//	events of                           pass them to sinks with
//	an agent written in Go              agent.WithSinks, in bridge/agent
//	agents of any language, by rings    rings.WithSinks, in bridge/rings
//
// [CSV] is the sink that NIXL's plug-in guide has as its example. To write your
// own, implement Write, or use a [Func].
//
// # Cost
//
// Sinks run on the goroutine that flushes an agent or drains rings, never on one
// that records:
//
//	recording an event for sinks    a copy of 64 bytes under a lock
//	calls of Write                  one per agent and run interval (100 ms by default)
//	CSV.Write                       less than 1 µs per event; one write(2) per batch
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/sink
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package sink
