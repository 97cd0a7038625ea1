// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"sync/atomic"
	"time"
)

// window spares kernels from reading the clock for every message. A kernel
// reads it for its first message in a window and not for the others.
//
// A window ends by a timer that the first message in it starts. So nothing runs
// while no message comes, and the time of each message of a kernel that gets
// less than one message in a window is exact.
type window struct {
	number atomic.Uint64 // of the current window, from 1
	timed  atomic.Bool   // the current window has a timer that ends it
	timer  *time.Timer
}

// windowTime is how old the time of the last message may be. Ending a window
// takes some microseconds: 0.1 % of one processor at this length.
const windowTime = 10 * time.Millisecond

func (w *window) init() {
	w.number.Store(1)
	w.timer = time.AfterFunc(time.Hour, w.end)
	w.timer.Stop()
}

// arm makes sure that the current window ends. A kernel calls it after it noted
// the window's number.
func (w *window) arm() {
	if !w.timed.Load() && w.timed.CompareAndSwap(false, true) {
		w.timer.Reset(windowTime)
	}
}

// end clears timed before it moves on: a kernel that notes the old number in
// between starts a timer that isn't needed. The other way round it could note
// the new number, find a timer that has fired, and never read the clock again.
func (w *window) end() {
	w.timed.Store(false)
	w.number.Add(1)
}

// moment is a time that may not be known yet, and never goes back.
type moment struct{ word atomic.Int64 } // ns since the epoch plus 1, 0 when unknown

func (m *moment) advance(t time.Time) {
	to := t.UnixNano() + 1
	for {
		old := m.word.Load()
		if old != 0 && to <= old || m.word.CompareAndSwap(old, to) {
			return
		}
	}
}

// load returns the zero time while the moment is unknown.
func (m *moment) load() time.Time {
	w := m.word.Load()
	if w == 0 {
		return time.Time{}
	}
	return time.Unix(0, w-1)
}

func (m *moment) forget() { m.word.Store(0) }
