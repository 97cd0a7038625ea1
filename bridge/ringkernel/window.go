package ringkernel

import (
	"sync/atomic"
	"time"
)

// window spares kernels from reading the clock for every message. A kernel
// reads it for its first message in a window and lets the others pass.
//
// A window ends by a timer that the first message in it starts, so nothing
// runs while no message comes, and a kernel that gets less than one message in
// a window's time knows each one's exact time.
type window struct {
	number atomic.Uint64 // of the present window, from 1
	timed  atomic.Bool   // the present window has a timer that ends it
	over   atomic.Bool   // there are no more windows: the clock is read for every message
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

// stop leaves no timer behind: kernels whose Runtime is closed may go on, and
// are to know the times of their messages.
func (w *window) stop() {
	w.over.Store(true)
	w.timer.Stop()
	// A kernel that noted the number before finds another one. One that was
	// about to note it, as it hasn't seen that it's over, starts the timer for
	// the last time.
	w.number.Add(1)
}

// arm sees to it that the present window ends. A kernel calls it after it
// noted the window's number.
func (w *window) arm() {
	if !w.timed.Load() && w.timed.CompareAndSwap(false, true) {
		w.timer.Reset(windowTime)
	}
}

// end comes before the next number: a kernel that notes the old number in
// between starts a timer that isn't needed. The other way round it could note
// the new number, find a timer that has fired, and read no clock ever again.
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

// load is the zero time while the moment is unknown.
func (m *moment) load() time.Time {
	w := m.word.Load()
	if w == 0 {
		return time.Time{}
	}
	return time.Unix(0, w-1)
}

func (m *moment) forget() { m.word.Store(0) }
