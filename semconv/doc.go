// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package semconv is the catalog of the metrics, attributes and events of this
// project: their names, kinds, units, descriptions and default buckets.
//
// The catalog has three parts. [NIXL] lists the metrics of NIXL agents, which the
// Collector receiver and packages bridge/agent and bridge/rings report.
// [RingKernel] lists the metrics of bridge/ringkernel, and [SplitInference] those
// of bridge/session. Each metric is also a variable, so that code doesn't repeat
// its name:
//
//	meter.Int64ObservableCounter(semconv.TransferIO.Name,
//		metric.WithUnit(semconv.TransferIO.Unit),
//		metric.WithDescription(semconv.TransferIO.Description))
//
// Names follow OpenTelemetry's rules for semantic conventions: no unit and no
// "total" in a name, UCUM units, durations in seconds, and no metric name that is
// also the namespace of another.
//
// The directory registry has the catalog in the format of OpenTelemetry Weaver,
// and docs/metrics.md and bridge/README.md have it as tables. All are generated from this
// package.
//
// The package imports nothing, so that every other package can import it.
package semconv

//go:generate go run ../internal/registry registry ../docs/metrics.md ../bridge/README.md ../receiver/nixlshmreceiver/metadata.yaml
