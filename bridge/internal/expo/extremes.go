// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "sync/atomic"

// extremes is the range of the durations added. Both words only rise while
// durations are added, and their zero is the empty range.
type extremes struct {
	fall atomic.Uint64 // farthest less the shortest: 0 while there is none
	rise atomic.Uint64 // the longest
}

// farthest is more than any duration.
const farthest = 1 << 63

func (e *extremes) add(ns int64) {
	lift(&e.fall, farthest-uint64(ns))
	lift(&e.rise, uint64(ns))
}

// lift raises what is less than to. Past the first few durations nothing is
// left to raise, and it costs a load.
func lift(word *atomic.Uint64, to uint64) {
	for {
		old := word.Load()
		if to <= old || word.CompareAndSwap(old, to) {
			return
		}
	}
}

// load is the range; ok is false when it is empty.
func (e *extremes) load() (least, most int64, ok bool) {
	fall, rise := e.fall.Load(), e.rise.Load()
	if fall == 0 {
		return 0, 0, false
	}
	least = int64(farthest - fall)
	// A duration that is being added may have raised the first word alone.
	return least, max(least, int64(rise)), true
}

// moveInto empties the range into another. Who reads e before to misses
// nothing: to has it before e has it no more.
func (e *extremes) moveInto(to *extremes) {
	move(&e.fall, &to.fall)
	move(&e.rise, &to.rise)
}

func move(from, to *atomic.Uint64) {
	for {
		v := from.Load()
		lift(to, v)
		if from.CompareAndSwap(v, 0) {
			return
		}
	}
}
