// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package expo is a lock-free histogram of durations that can be read as both
// kinds of histogram that OpenTelemetry has: exponential, with base-2 buckets,
// and explicit, with bounds at 1, 2 and 5 times a power of ten nanoseconds.
//
// A histogram that widens its buckets while others write to it needs a lock,
// or loses counts. This one never moves a count: [Histogram.Record] always
// adds to the bucket of the finest scale, [MaxScale], and the scale goes down
// where it is read, in [Sum], until at most [MaxSize] buckets are left. As the
// range of what was recorded only grows, the scale of later readings only
// falls, as that of a cumulative histogram has to.
//
// A bound of an explicit histogram falls inside a base-2 bucket. As steps are
// a factor of 2 or 2.5 apart, an octave holds at most one of them, and counts
// separately what of that bucket is not above it. So explicit counts are exact.
//
// The price is memory: an octave of 64 buckets takes 520 bytes, and is
// allocated when the first duration falls into it. Durations from 1 µs to 1 s
// touch 20.
package expo
