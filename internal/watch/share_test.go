//go:build linux && (amd64 || arm64)

package watch

import (
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// asked says whether a save was asked for since the last call.
func asked(w *Watcher) bool {
	select {
	case <-w.asked:
		return true
	default:
		return false
	}
}

// Agents that fill their rings at different times share a save, which comes
// within a quarter of the run interval.
func TestAgentsShareASave(t *testing.T) {
	x := newWorld(t)
	rings := []*ringbuf.Writer{x.ring("a", ringbuf.V4, 16), x.ring("b", ringbuf.V4, 16)}
	w := x.open(newMemory(), nil)
	flush(t, w)
	x.pass(DefaultRunInterval)
	w.save(t.Context())
	asked(w)
	for _, ring := range rings {
		x.pass(10 * time.Millisecond)
		push(t, ring, 15)
		if w.Drain(); asked(w) {
			t.Error("a save of one agent is asked for")
		}
	}
	if d := w.pace(50*time.Millisecond, atLeisure); d != 5*time.Millisecond {
		t.Errorf("the next round is in %v, and the save was to be 5ms from now", d)
	}
	x.pass(5 * time.Millisecond)
	if w.Drain(); !asked(w) {
		t.Error("no save is asked for")
	}
	w.save(t.Context())
	for _, ring := range rings {
		if n, _ := ring.Len(); n != 0 {
			t.Errorf("%s holds %d events", ring.Path(), n)
		}
	}
}

// An agent that fills its ring again sooner than it should is saved at once.
func TestQuickAgentIsSavedAtOnce(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(newMemory(), nil)
	flush(t, w)
	asked(w)
	for range 3 {
		x.pass(10 * time.Millisecond)
		push(t, ring, 15)
		if w.Drain(); !asked(w) {
			t.Error("no save is asked for")
		}
		w.save(t.Context())
	}
}

// What waits for a save isn't looked at in each round, and speeds none up,
// unless the store fails.
func TestWaitingRingIsIdle(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(newMemory(), nil)
	flush(t, w)
	push(t, ring, 12)
	if w.round() == atLeisure {
		t.Error("a ring that has got full isn't")
	}
	push(t, ring, 1)
	if w.round() != atLeisure {
		t.Error("it is full again by one event")
	}
	rings := *w.rings.Load()
	if n := w.idle(rings, w.unsettled(x.clock())); n != len(rings) {
		t.Error("a ring that waits for a save isn't idle")
	}
	w.failed.Store(true)
	if n := w.idle(rings, w.unsettled(x.clock())); n != 0 {
		t.Error("a ring that can't be saved is idle")
	}
}
