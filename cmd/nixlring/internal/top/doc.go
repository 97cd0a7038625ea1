// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package top computes what nixlring top shows: for each agent of a directory, the rates
// and quantiles of the last seconds, the state of its ring, and problems. Package screen
// draws it.
//
// A [Source], such as [Rings], takes samples, which have a [Reading] of the totals of each agent. From the
// differences between samples, a [Board] computes a [Row] per agent, and keeps a short
// history of it.
//
// # Quantiles
//
// Quantiles are estimated from the histogram of the transfers in the window, as by
// histogram_quantile of Prometheus: by linear interpolation within a bucket. The first
// bucket starts at 0. The bounds are finer than those of the exported metrics, 8 to 10 per
// decade from 1 µs to 100 s, so a quantile is off by at most a third, and usually by a few
// percent. A quantile beyond the last bound is reported as the last bound. NIXL truncates
// times to whole microseconds.
//
// # Limits of observing
//
// The rings are observed: no events are consumed, so a Collector can consume the same rings.
// Therefore:
//
//   - Totals lack the events that a consumer took before the first sample. Rates lack the
//     events that were in the ring by then, because the time when they were written is
//     unknown.
//   - The registered memory is unknown ([Reading.MemoryUnknown]) unless all registrations
//     were observed.
//   - Events that a consumer takes and the agent overwrites between two polls are missed.
//     [Totals.Missed] counts how often this was detected.
//   - A full ring without a consumer stops changing, although its agent may
//     continue to work.
package top
