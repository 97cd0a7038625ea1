// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package tally turns the events of one NIXL agent into its totals: counters,
// last values, histograms, and signs of lost events.
//
// [Agent.Add] counts batches of events. It allocates only for the first
// event of a name. Values are stored as integers in the units of the ring (bytes,
// microseconds) and converted to floating point on reading.
//
// [Totals] are for reading. An agent's own totals change with each batch.
// [Agent.Snapshot] makes an independent copy, so reporting needs no lock.
//
// Totals only grow. They survive a restart of the agent, so events counted between the
// last export and the restart aren't lost. [Totals.MemoryUsage] describes the current
// state and starts at zero with the agent.
//
// # Speed
//
// A ring holds mostly whole transfers with values in the usual range. These are
// counted in runs; see transfers.go. A new minimum or maximum, an incomplete group,
// and any other event are counted one by one. Older layouts are translated to layout
// V3 first.
//
// # Classification
//
// An event counts toward a metric of the catalog only if its type, or its category and
// name, match the catalog. Every other event is counted in a [Series], or in
// [Totals.Overflow] once there are too many series. No event is dropped.
//
// # Reading order
//
// A file uses types of earlier files only, except in fields, and for the loops over groups.
//
//   - sum.go, total.go, shape.go, scale.go, exponential.go, histogram.go,
//     histograms.go: numbers and histograms
//   - category.go, typename.go, totals.go, agent.go: the totals
//   - memory.go, health.go, series.go, spelling.go: their parts
//   - group.go, transfers.go, translate.go, slots.go, watch.go: transfers
//   - values.go: totals that another program has counted
//   - points.go: the table of metrics
//   - state.go: the stored form
package tally
