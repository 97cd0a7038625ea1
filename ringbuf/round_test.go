//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A round calls a ring idle just where a read would find nothing.
func TestRoundFindsWhatIsNotIdle(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, w *Writer, r *Reader)
		idle   bool
	}{
		"nothing":     {func(*testing.T, *Writer, *Reader) {}, true},
		"pending":     {func(t *testing.T, w *Writer, _ *Reader) { push(t, w, 0, 1) }, false},
		"uncommitted": {func(t *testing.T, w *Writer, r *Reader) { push(t, w, 0, 1); read(t, r) }, true},
		"committed":   {func(t *testing.T, w *Writer, r *Reader) { push(t, w, 0, 1); read(t, r); commit(t, r) }, true},
		"another reader": {func(_ *testing.T, w *Writer, _ *Reader) {
			atomic.StoreUint64(&w.hdr.readPos, 1)
		}, false},
		"another reader of what is uncommitted": {func(t *testing.T, w *Writer, r *Reader) {
			push(t, w, 0, 1)
			read(t, r)
			atomic.StoreUint64(&w.hdr.readPos, 1)
		}, false},
		"starting anew": {func(_ *testing.T, w *Writer, _ *Reader) { atomic.StoreInt32(&w.hdr.version, 0) }, false},
		"another size":  {func(_ *testing.T, w *Writer, _ *Reader) { atomic.StoreUint64(&w.hdr.capacity, 32) }, false},
		"closed": {func(t *testing.T, _ *Writer, r *Reader) {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRing(t, V4, 16)
			r := open(t, w.Path(), Consume)
			c.change(t, w, r)
			var o Round
			idle := false
			if o.Run(func() { idle = o.Idle(r) }) {
				t.Error("a fault")
			}
			if idle != c.idle {
				t.Errorf("idle: %v", idle)
			}
		})
	}
}

func TestRoundCallsNoObserverIdle(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Observe)
	var o Round
	o.Run(func() {
		if o.Idle(r) {
			t.Error("an observer is idle")
		}
	})
}

// A round may look while another goroutine reads and commits. It never takes
// events for settled that nobody committed, nor a ring for idle that has more.
func TestRoundBesideAReader(t *testing.T) {
	w := newRing(t, V4, 64)
	r := open(t, w.Path(), Consume)
	steps := []struct {
		do            func()
		idle, settled bool // afterwards
	}{
		{func() { commit(t, r) }, true, true},
		{func() { push(t, w, 0, 5) }, false, true},
		{func() { read(t, r) }, true, false},
	}
	var at atomic.Int64 // twice the number of steps done; odd during a step
	var looking sync.WaitGroup
	var done atomic.Bool
	looking.Go(func() {
		for !done.Load() {
			before := at.Load()
			var o Round
			var idle bool
			o.Run(func() { idle = o.Idle(r) })
			settled := o.Settled(r)
			if before%2 != 0 || at.Load() != before {
				continue
			}
			if want := steps[before/2%3]; idle != want.idle || settled != want.settled {
				t.Errorf("after step %d: idle %v, settled %v", before/2%3, idle, settled)
			}
		}
	})
	for i := 1; i < 3000; i++ {
		at.Add(1)
		steps[i%3].do()
		at.Add(1)
		runtime.Gosched()
	}
	done.Store(true)
	looking.Wait()
}

// A file that shrinks ends the round at its ring, and nothing else.
func TestRoundSurvivesAFileThatShrinks(t *testing.T) {
	whole := open(t, newRing(t, V4, 16).Path(), Consume)
	w := newRing(t, V4, 16)
	gone := open(t, w.Path(), Consume)
	if err := os.Truncate(w.Path(), 0); err != nil {
		t.Fatal(err)
	}
	var o Round
	looked := 0
	fault := o.Run(func() {
		for _, r := range []*Reader{whole, gone, whole} {
			looked++
			o.Idle(r)
		}
	})
	if !fault || looked != 2 {
		t.Errorf("fault %v at the %d. ring", fault, looked)
	}
	if _, err := gone.Read(0, func(Batch) {}); err == nil {
		t.Error("a read finds nothing wrong")
	}
}

// A round hides no other panic, whatever was looked at before.
func TestRoundPassesPanicsOn(t *testing.T) {
	r := open(t, newRing(t, V4, 16).Path(), Consume)
	defer func() {
		if recover() == nil {
			t.Error("it was hidden")
		}
	}()
	var o Round
	o.Run(func() {
		o.Idle(r)
		panic("another")
	})
}
