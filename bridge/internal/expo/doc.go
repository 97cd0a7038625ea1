// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package expo implements a lock-free histogram of durations. It can be read both as an
// exponential histogram, with base-2 buckets, and as an explicit-bucket histogram, with
// bounds at 1, 2 and 5 times a power of ten nanoseconds.
//
// A histogram that merges its buckets during concurrent writes needs a lock, or loses
// counts. This one never moves a count: [Histogram.Record] always uses the finest
// scale, [MaxScale]. [Sum] reduces the scale when it reads the histogram, until there
// are at most [MaxSize] buckets. The range of recorded durations only grows, so the
// scale of later readings never increases, as cumulative histograms require.
//
// The bound of an explicit bucket (a step) is inside a base-2 bucket. Steps are at
// least a factor of 2 apart, so an octave has at most one. For each octave, the
// histogram separately counts the durations in the step's bucket that don't exceed the
// step. Explicit counts are therefore exact.
//
// An octave of 64 buckets takes 520 bytes and is allocated at the first duration in it.
// Durations from 1 µs to 1 s take 20 octaves.
package expo
