// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package top tells what the agents of a directory are doing right now: rates
// and quantiles over the last seconds, how their rings fare, and what looks
// wrong. It is what nixlring top shows; the showing itself is package screen's.
//
// A [Source] takes readings: the totals of all agents at one time. A [Board]
// makes rates of the differences between readings, over a window, and keeps a
// short history of each agent. A [Row] is what it comes to.
//
// # Quantiles
//
// A quantile is read off the histogram of the window's transfers as
// Prometheus' histogram_quantile does it: by linear interpolation within the
// bucket that its rank falls into, from 0 in the first one. The bounds are
// finer than those of the exported metrics, 8 to 10 per decade from 1 µs to
// 100 s, so that a quantile is at most a third off, and mostly a few percent.
// One beyond the last bound is given as that bound. NIXL truncates times to
// whole microseconds.
//
// # What an observer can't see
//
// The rings are observed: no event is taken from them, so that a Collector
// beside it misses nothing. For that
//
//   - what a consumer took before the first look isn't in the totals, and what
//     stood in the ring by then isn't in the rates: when it was written is
//     unknown;
//   - the memory that an agent has registered is unknown ([Reading.Unseen])
//     unless all of it was seen;
//   - events that a consumer takes and the agent writes over between two looks
//     go by unseen; [Totals.Missed] counts the times that it showed;
//   - a ring that nobody consumes fills up and stands still: its agent may work
//     on, and nobody can tell.
package top
