// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package tally turns the events of one NIXL agent into its totals: counters,
// last values, histograms, and signs of lost events.
//
// An [Agent] takes batches straight from the ring ([Agent.Add]) and never
// allocates, except for the first event of a name. Everything is kept as
// integers, in the units of the ring (bytes, microseconds), and converted to
// floating point when it is read.
//
// [Totals] are for reading. An agent's own totals change with each batch;
// [Agent.Snapshot] makes a copy that nothing else writes to, so that whoever
// reports it needs no lock.
//
// Totals only grow: they outlive a restart of the agent, so nothing that was
// counted between the last export and the restart is lost. What describes the
// present, [Totals.MemoryUsage], starts at zero with the agent.
//
// # Speed
//
// A ring holds mostly whole transfers, with values like those before. These are
// counted in runs; see transfers.go. A new minimum or maximum, an incomplete
// group, and any other event go through the same totals one by one. Older
// layouts are translated to the newest on the way.
//
// # What counts as what
//
// An event counts toward a metric of the catalog only if its type, or its
// category and name, say so without contradiction. Every other event is kept
// apart as a [Series], and past a limit on their number in [Totals.Overflow].
// No event is dropped.
package tally
