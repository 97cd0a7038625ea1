//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Whatever moves readPos between the first look of a commit and its store, the
// store doesn't go over it.
func TestCommitStoresOverNobody(t *testing.T) {
	for _, c := range []struct {
		at   int // where the reader has committed
		to   uint64
		want func(error) bool
	}{
		{5, 0, func(err error) bool { return errors.Is(err, ErrRestarted) }},
		{5, 8, func(err error) bool { return errors.As(err, new(*ForeignReadError)) }},
		{0, 8, func(err error) bool { return errors.As(err, new(*ForeignReadError)) }},
	} {
		w := newRing(t, V4, 64)
		r := open(t, w.Path(), Consume)
		advance(t, w, r, c.at)
		push(t, w, 0, 20)
		read(t, r)
		atomic.StoreUint64(w.read, c.to)
		if err := r.swap(); !c.want(err) {
			t.Errorf("from %d to %d: error %v", c.at, c.to, err)
		}
		if h := headerOf(w); h.ReadPos != c.to {
			t.Errorf("from %d: read position %d was stored over %d", c.at, h.ReadPos, c.to)
		}
	}
}

// A commit from position 0 can hit a ring that has just started anew: 0 is
// what its agent stored. Such a commit is undone. But an agent that used the
// room at once, and has come round to 0 again, is not to lose its events.
func TestCommitFromZero(t *testing.T) {
	for _, c := range []struct {
		name string
		ring func(w *Writer) // what happens between the swap and the second look
		want error
	}{
		{"nothing happens", func(*Writer) {}, nil},
		{"the agent used the room and wrapped to 0", func(w *Writer) { ok(t, w.Push(NewEvent(TypeTxBytes, 7777))) }, nil},
		{"the agent used the room and wrapped", func(w *Writer) { push(t, w, 100, 110) }, nil},
		{"and its file system wrote a page back", func(w *Writer) { ok(t, w.Push(NewEvent(TypeTxBytes, 7777))); w.touch(t) }, nil},
		{"the agent wrote the same event as before", func(w *Writer) { ok(t, w.Push(w.slots.Event(63))) }, nil},
		{"the agent had started anew", func(w *Writer) { w.startOver(t, false) }, ErrRestarted},
		{"and had written", func(w *Writer) { w.startOver(t, false); atomic.StoreUint64(w.write, 29) }, ErrRestarted},
		{"it is starting anew", func(w *Writer) { w.startOver(t, true) }, ErrRestarted},
		{"it had started anew with more slots", func(w *Writer) {
			w.startOver(t, false)
			atomic.StoreUint64(w.capacity, 128)
			atomic.StoreUint64(w.write, 63)
		}, ErrRestarted},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRing(t, V4, 64)
			r := open(t, w.Path(), Consume)
			advance(t, w, r, 64) // once around, so that every slot has been written
			push(t, w, 0, 63)
			if got, err := tryRead(r, 30); err != nil || len(got) != 30 {
				t.Fatal(len(got), err)
			}
			before, err := r.lastSlot()
			ok(t, err)
			ok(t, r.swap())
			c.ring(w)
			if got := r.settled(before); got != (c.want == nil) {
				t.Errorf("settled: %v", got)
			}
		})
	}
}

// The whole of a commit whose swap went to a new ring.
func TestCommitFromZeroIsUndone(t *testing.T) {
	w := newRing(t, V4, 64)
	r := open(t, w.Path(), Consume)
	push(t, w, 0, 30)
	read(t, r)
	w.startOver(t, false)
	if err := r.commitFromZero(); !errors.Is(err, ErrRestarted) { // past the first look
		t.Errorf("error %v, want %v", err, ErrRestarted)
	}
	if h := headerOf(w); h.ReadPos != 0 {
		t.Errorf("the new ring's read position is %d", h.ReadPos)
	}
}

// touch changes the time of a ring's file, as a start does and a write-back can.
func (w *Writer) touch(t *testing.T) {
	t.Helper()
	nextTick(t, w.Path())
	truncate(t, w.Path(), int64(len(w.mem)))
}

// startOver is what an agent that starts anew does to the ring of w, up to
// where the version is 0 or all of it. readPos is left to the test.
func (w *Writer) startOver(t *testing.T, half bool) {
	t.Helper()
	w.touch(t)
	atomic.StoreUint64(w.write, 0)
	atomic.StoreInt32(w.version, 0)
	if !half {
		atomic.StoreInt32(w.version, w.layout.Version())
	}
}

// At capacity 2 every other commit is one from 0, and an agent at full speed
// has always come round by the next look. Small rings are where positions
// that repeat would show.
func TestSmallRingsAtFullSpeed(t *testing.T) {
	const events = 30_000
	for _, capacity := range []int{2, 4, 8} {
		w := newRing(t, V4, capacity)
		r := open(t, w.Path(), Consume)
		var stop atomic.Bool
		var agent sync.WaitGroup
		agent.Go(func() {
			for i := 0; i < events && !stop.Load(); {
				n, err := w.PushBatch([]Event{{Type: TypeTxBytes, Value: uint64(i)}})
				if err != nil {
					t.Error(err)
					return
				}
				if i += n; n == 0 {
					runtime.Gosched()
				}
			}
		})
		next := uint64(0)
		for next < events && !t.Failed() {
			fill, err := r.Read(0, func(b Batch) {
				for _, e := range b.Typed() {
					if e.Value != next {
						t.Errorf("capacity %d: event %d, want %d", capacity, e.Value, next)
					}
					next++
				}
			})
			if err = errors.Join(err, r.Commit()); err != nil {
				t.Errorf("capacity %d: %v", capacity, err)
			}
			if fill == 0 {
				runtime.Gosched()
			}
		}
		stop.Store(true)
		agent.Wait()
	}
}
