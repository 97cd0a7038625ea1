//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
)

// capacities are of a ring of one page, which a reader asks the file about at
// each pass, and of one that it needn't.
var capacities = []int{64, 1024}

// The agent's stores of a restart, one by one. Wherever a reader looks, no old
// event comes out as pending, and once the agent is done the new ring is whole.
func TestHeaderCaughtHalfWay(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(strconv.Itoa(capacity), func(t *testing.T) { headerCaughtHalfWay(t, capacity) })
	}
}

func headerCaughtHalfWay(t *testing.T, capacity int) {
	steps := []func(h *header){
		func(*header) {}, // only the size is set
		func(h *header) { atomic.StoreUint64(&h.writePos, 0) },
		func(h *header) { atomic.StoreUint64(&h.readPos, 0) },
		func(h *header) { atomic.StoreInt32(&h.version, 0) },
		func(h *header) { atomic.StoreUint64(&h.capacity, uint64(capacity)) },
		func(h *header) { atomic.StoreUint64(&h.mask, uint64(capacity-1)) },
		func(h *header) { atomic.StoreInt32(&h.version, 4) },
		func(h *header) { atomic.StoreInt32(&h.expectedVersion, 4) },
	}
	for _, mode := range modes() {
		for _, at := range []int{0, 7, capacity} {
			for _, uncommitted := range []int{0, 20} {
				for done := range len(steps) + 1 {
					if done == 2 {
						continue // see TestStartInTheMiddleOfALook
					}
					w := newRing(t, V4, capacity)
					c := open(t, w.Path(), Consume)
					advance(t, w, c, at)
					r := c
					if mode == Observe {
						r = open(t, w.Path(), Observe)
					}
					push(t, w, 0, uncommitted)
					read(t, r)
					w.touch(t)
					for _, step := range steps[:done] {
						step(w.hdr)
					}

					got, err := tryRead(r, 0)
					if len(got) != 0 || err != nil && !errors.Is(err, ErrRestarted) {
						t.Errorf("%v at %d, %d uncommitted, %d stores done: %d events, error %v", mode, at, uncommitted, done, len(got), err)
					}
					if err := r.Commit(); err != nil && !errors.Is(err, ErrRestarted) {
						t.Errorf("%v at %d, %d uncommitted, %d stores done: commit: %v", mode, at, uncommitted, done, err)
					}
					for _, step := range steps[done:] {
						step(w.hdr)
					}
					if h := headerOf(w); done > 2 && mode == Consume && h.ReadPos != 0 {
						t.Errorf("at %d, %d uncommitted, %d stores done: the new ring's read position is %d", at, uncommitted, done, h.ReadPos)
					}
				}
			}
		}
	}
}

// The worst moment of all: writePos is 0 already, readPos isn't. It lasts one
// store of the agent, and to a reader the ring looks full of old events. An
// agent goes on within nanoseconds; the reader waits for longer than that.
func TestStartInTheMiddleOfALook(t *testing.T) {
	whole := settle
	t.Cleanup(func() { settle = whole })
	for _, mode := range modes() {
		for _, capacity := range capacities {
			w := newRing(t, V4, capacity)
			c := open(t, w.Path(), Consume)
			advance(t, w, c, 7)
			r := c
			if mode == Observe {
				r = open(t, w.Path(), Observe)
			}
			w.touch(t)
			atomic.StoreUint64(w.write, 0)
			settle = func(h *header) {
				whole(h)
				atomic.StoreUint64(w.read, 0)
				atomic.StoreInt32(w.version, 0)
				atomic.StoreInt32(w.version, 4)
			}
			got, err := tryRead(r, 0)
			if len(got) != 0 || !errors.Is(err, ErrRestarted) {
				t.Errorf("%v, %d slots: %d events, error %v", mode, capacity, len(got), err)
			}
		}
	}
}

// An observer beside a consumer that has emptied the ring at position 0 sees the
// positions of a ring that has just been made. As long as nobody has touched
// the file it is the old one, with events that the observer hasn't seen.
func TestEmptyAtZeroIsNoStart(t *testing.T) {
	w := newRing(t, V4, 64)
	push(t, w, 0, 63) // so that every page has been written before the observer comes
	c := open(t, w.Path(), Consume)
	read(t, c)
	commit(t, c)
	advance(t, w, c, 51)
	o := open(t, w.Path(), Observe)
	push(t, w, 0, 14)
	equal(t, "the consumer's events", read(t, c), samples(V4, 0, 14))
	commit(t, c)
	if h := headerOf(w); h.WritePos != 0 || h.ReadPos != 0 {
		t.Fatalf("positions %d and %d, the test wants 0", h.WritePos, h.ReadPos)
	}
	equal(t, "the observer's events", read(t, o), samples(V4, 0, 14))
}

// A ring that has just wrapped looks the same, and nothing is held back of it,
// whether its file was touched or not.
func TestWrapIsNoStart(t *testing.T) {
	for _, mode := range modes() {
		for _, capacity := range capacities {
			for _, touched := range []bool{false, true} {
				w := newRing(t, V4, capacity)
				c := open(t, w.Path(), Consume)
				advance(t, w, c, capacity-14)
				r := c
				if mode == Observe {
					r = open(t, w.Path(), Observe)
				}
				push(t, w, 0, 14)
				if touched {
					w.touch(t)
				}
				equal(t, "events", read(t, r), samples(V4, 0, 14))
				commit(t, r)
			}
		}
	}
}
