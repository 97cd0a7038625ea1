// Package expo is a lock-free exponential histogram of durations, in the form
// that OpenTelemetry's data model gives it: base-2 exponential buckets, a
// count of zeros, sum, min and max.
//
// A histogram that widens its buckets while others write to it needs a lock,
// or loses counts. This one never moves a count: [Histogram.Record] always
// adds to the bucket of the finest scale, [MaxScale], and the scale goes down
// where it is read, in [Sum], until at most [MaxSize] buckets are left. As the
// range of what was recorded only grows, the scale of later readings only
// falls, as that of a cumulative histogram has to.
//
// The price is memory: an octave of 64 buckets takes 512 bytes, and is made
// when the first duration falls into it. Durations from 1 µs to 1 s touch 20.
package expo
