// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"sync/atomic"
	"time"
)

// window limits how often kernels read the clock. A kernel only reads it for its
// first message in a window.
//
// The first message in a window starts a timer that ends it, so nothing runs while
// there are no messages. If a kernel receives at most one message per window, the
// time of each message is exact.
type window struct {
	number atomic.Uint64 // of the current window, from 1
	timed  atomic.Bool   // the current window has a timer that ends it
	timer  *time.Timer
}

// windowTime is the length of a window, and so the maximum error of the time of the
// last message. Ending a window takes some microseconds: 0.1% of one CPU at this
// length.
const windowTime = 10 * time.Millisecond

func (w *window) init() {
	w.number.Store(1)
	w.timer = time.AfterFunc(time.Hour, w.end)
	w.timer.Stop()
}

// arm makes sure that the current window ends. A kernel calls it after storing the
// window's number.
func (w *window) arm() {
	if !w.timed.Load() && w.timed.CompareAndSwap(false, true) {
		w.timer.Reset(windowTime)
	}
}

// end clears timed before it increments the number. A kernel that stores the old
// number in between starts a timer unnecessarily. In the opposite order, a kernel
// could store the new number while timed is still set, start no timer, and never
// read the clock again.
func (w *window) end() {
	w.timed.Store(false)
	w.number.Add(1)
}

// moment is a time that may be unknown and never decreases.
type moment struct{ word atomic.Int64 } // ns since the epoch plus 1; 0 if unknown

func (m *moment) advance(t time.Time) {
	to := t.UnixNano() + 1
	for {
		old := m.word.Load()
		if old != 0 && to <= old || m.word.CompareAndSwap(old, to) {
			return
		}
	}
}

// load returns the time, or the zero time if it is unknown.
func (m *moment) load() time.Time {
	w := m.word.Load()
	if w == 0 {
		return time.Time{}
	}
	return time.Unix(0, w-1)
}

func (m *moment) forget() { m.word.Store(0) }
