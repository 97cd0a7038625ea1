// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package semconv is the catalog of the metrics this project emits: their
// names, kinds, units, descriptions, attributes and default buckets.
//
// The catalog has three parts. [NIXL] holds what the Collector's receiver
// and a bridge agent emit for NIXL agents, [RingKernel] what a ring-kernel
// runtime emits through the bridge, and [SplitInference] what a
// split-inference session emits. Each metric is also a variable of its own,
// so that code names it rather than spells it:
//
//	meter.Int64ObservableCounter(semconv.TransferIO.Name,
//		metric.WithUnit(semconv.TransferIO.Unit),
//		metric.WithDescription(semconv.TransferIO.Description))
//
// Names follow OpenTelemetry's rules for semantic conventions: no unit and no
// "total" in a name, UCUM units, seconds for durations, and no name that is
// also the namespace of another.
//
// The package imports nothing, so that anything may import it.
package semconv
