//go:build linux && (amd64 || arm64)

package watch

import (
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// saveSlowly begins a save that takes until the caller ends it.
func saveSlowly(t *testing.T, w *Watcher, store *memory) (end func()) {
	t.Helper()
	stalled, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	store.before = func() {
		close(stalled)
		<-release
		store.before = nil
	}
	go func() {
		defer close(done)
		w.save(t.Context())
	}()
	<-stalled
	return func() {
		close(release)
		<-done
	}
}

// As long as the next bursts fit the ring beside what waits for its
// checkpoint, a slow store is waited for: a crash right then loses nothing.
func TestSlowStoreIsWaitedForWhileThereIsRoom(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.open(store, nil)
	push(t, ring, 10)
	flush(t, w)
	for range 2 { // a quarter of the ring, in two bursts
		push(t, ring, 8)
		w.Drain()
	}
	end := saveSlowly(t, w, store)
	x.pass(time.Second)
	for range 2 {
		push(t, ring, 8)
		w.Drain()
	}
	if n, _ := ring.Len(); n != 32 {
		t.Errorf("%d events are left in the ring, not 32: a crash now loses the others", n)
	}
	end()
	crash(w)
	w = x.open(store, nil)
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 42 {
		t.Errorf("%d counted of 42 after a crash", got)
	}
}

// A process that was stopped for a while finds a save that began long ago. That
// says nothing about the store.
func TestPauseIsntASlowStore(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(store, nil)
	push(t, ring, 4)
	w.Drain()
	end := saveSlowly(t, w, store)
	x.pass(time.Second)
	push(t, ring, 11)
	w.Drain() // the first since
	if n, _ := ring.Len(); n != 15 {
		t.Errorf("%d events are left in the ring, not 15", n)
	}
	end()
}

func TestSlowStoreIsReported(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(store, nil)
	for range 2 {
		push(t, ring, 13)
		w.Drain()
		end := saveSlowly(t, w, store)
		for range 3 {
			x.pass(time.Second)
			w.Drain()
		}
		if n, _ := ring.Len(); n != 0 {
			t.Errorf("%d events are left in the ring, where the next burst needs room", n)
		}
		end()
		flush(t, w)
	}
	if n := x.told(StoreSlow); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	if got := transmitted(w)["agent"]; got != 26 {
		t.Errorf("%d counted of 26", got)
	}
}

// A save may be held up before it comes to the store: by whoever is shown
// the agents, for example.
func TestSaveThatIsHeldUpBeforeTheStoreIsSlow(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	x.ring("last", ringbuf.V4, 16)
	w := x.open(store, nil)
	push(t, ring, 13)
	shown, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		w.Collect(t.Context(), func(v View) {
			if v.Name == "last" {
				close(shown)
				<-release
			}
		})
	}()
	<-shown
	for range 3 {
		x.pass(time.Second)
		w.Drain() // "last" is locked, but has nothing to drain
	}
	if n, _ := ring.Len(); n != 0 || x.told(StoreSlow) != 1 {
		t.Errorf("%d events are left in the ring, where the next burst needs room; notices %v", n, x.notices)
	}
	close(release)
	<-done
	if got := transmitted(w)["agent"]; got != 13 {
		t.Errorf("%d counted of 13", got)
	}
}
