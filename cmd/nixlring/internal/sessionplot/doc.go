// Package sessionplot draws what a split-inference session's CSV says: the time
// per operation and per layer, the timeline, and the distribution of the
// packets' durations.
//
// A session is read twice, as its length must be known before its timeline can
// be cut into pieces; memory doesn't depend on the number of packets.
package sessionplot
