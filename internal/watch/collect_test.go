//go:build linux && (amd64 || arm64)

package watch

import (
	"errors"
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// What was collected has been stored, even where the drain loop comes in
// between: an agent that starts anew after a crash takes none of it back.
func TestWhatIsCollectedIsStored(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.open(store, nil)
	push(t, ring, 3)
	store.before = func() {
		push(t, ring, 2)
		w.Drain()
	}
	store.after = func() {
		push(t, ring, 1)
		w.Drain()
	}
	var told int64
	w.Collect(t.Context(), func(v View) { told = v.Tally.Size(0).Total().Int64() })
	crash(w)
	store.before, store.after = nil, nil
	x.ring("agent", ringbuf.V4, 64)
	w = x.open(store, nil)
	flush(t, w)
	if got := transmitted(w)["agent"]; told != 3 || got != told {
		t.Errorf("%d were collected, %d are left after a crash and a restart of the agent; want 3", told, got)
	}
}

// A ring that is found spoiled at the very moment of its checkpoint is given
// up; what was read from it is stored all the same.
func TestCheckpointOfASpoiledRing(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V1, 4096)
	w := x.open(store, nil)
	push(t, ring, 3000)
	w.Drain()
	if err := os.Truncate(ring.Path(), 0); err != nil {
		t.Fatal(err)
	}
	w.save(t.Context())
	crash(w)
	if err := os.Remove(ring.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	x.ring("agent", ringbuf.V4, 64)
	w = x.open(store, nil)
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 3000 {
		t.Errorf("%d counted of 3000", got)
	}
}

func TestCollectWithoutStore(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(nil, nil)
	push(t, ring, 5)
	var told int64
	w.Collect(t.Context(), func(v View) { told = v.Tally.Size(0).Total().Int64() })
	if n, _ := ring.Len(); told != 5 || n != 0 {
		t.Errorf("%d collected of 5, %d left in the ring", told, n)
	}
}
