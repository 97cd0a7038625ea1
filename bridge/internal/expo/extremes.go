// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "sync/atomic"

// extremes is the range of the added durations. Both words only increase while
// durations are added. The zero value is an empty range.
type extremes struct {
	fall atomic.Uint64 // farthest minus the shortest duration; 0 if there is none
	rise atomic.Uint64 // the longest duration
}

// farthest is greater than any duration.
const farthest = 1 << 63

func (e *extremes) add(ns int64) {
	lift(&e.fall, farthest-uint64(ns))
	lift(&e.rise, uint64(ns))
}

// lift raises a word to a greater value. After the first few durations, it usually only
// takes a load.
func lift(word *atomic.Uint64, to uint64) {
	for {
		old := word.Load()
		if to <= old || word.CompareAndSwap(old, to) {
			return
		}
	}
}

// load returns the range; ok is false if it is empty.
func (e *extremes) load() (least, most int64, ok bool) {
	fall, rise := e.fall.Load(), e.rise.Load()
	if fall == 0 {
		return 0, 0, false
	}
	least = int64(farthest - fall)
	// A concurrent add may have raised only the first word.
	return least, max(least, int64(rise)), true
}

// moveInto adds the range to another one and empties it. A reader that loads e before
// to misses nothing, because to is raised before e is emptied.
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
