// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package sink defines the interface for programs that process individual NIXL
// telemetry events, instead of or in addition to exporting metrics. A [Sink] receives
// every event with its agent, time, category, name and value.
//
// For the same purpose, NIXL has exporter plug-ins: shared libraries that an agent
// loads. A Sink is a Go interface with a single method. It receives the events of:
//
//	source                              option
//	an agent written in Go              agent.WithSinks, in bridge/agent
//	rings of agents in any language     rings.Config, in bridge/rings
//
// [CSV] writes the same file as the example exporter in NIXL's plug-in guide. To write
// your own sink, implement Write or use a [Func].
//
// # Cost
//
// Sinks run on the goroutine that flushes an agent or drains rings, never on a
// goroutine that records events:
//
//	recording an event for sinks    a copy of 64 bytes under a lock
//	calls of Write                  one per agent and run interval (by default, 100 ms)
//	CSV.Write                       less than 1 µs per event; one write(2) per batch
//
// bridge/README.md in the repository shows how to install this package.
package sink
