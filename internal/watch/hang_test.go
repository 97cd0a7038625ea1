//go:build linux && (amd64 || arm64)

package watch

import (
	"context"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// hang is a place in which somebody waits until the test ends it.
type hang struct{ reached, ended chan struct{} }

func newHang() *hang { return &hang{reached: make(chan struct{}), ended: make(chan struct{})} }

func (h *hang) here() {
	select {
	case <-h.ended: // it is over
	case h.reached <- struct{}{}:
		<-h.ended
	}
}

// within calls fn and fails the test if it doesn't return.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s waits for the scan", what)
	}
}

// hangDirectories has every folder hang that is opened from now on.
func hangDirectories(t *testing.T, h *hang) {
	t.Helper()
	before := openFolder
	openFolder = func(dir, name string) (*ringbuf.Folder, error) {
		h.here()
		return before(dir, name)
	}
	t.Cleanup(func() { openFolder = before })
}

// hungStore hangs where a checkpoint is asked for.
type hungStore struct {
	*memory
	hang *hang
}

func (s *hungStore) Get(ctx context.Context, key string) ([]byte, error) {
	if s.hang != nil {
		s.hang.here()
	}
	return s.memory.Get(ctx, key)
}

// A directory or a store that hangs costs what is new in it. Open rings are
// drained, stored and reported, and the state is told, as ever.
func TestHungScanHoldsUpNobody(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, x *world, s *hungStore, h *hang){
		"directory": func(t *testing.T, _ *world, _ *hungStore, h *hang) { hangDirectories(t, h) },
		"checkpoint of a new ring": func(_ *testing.T, x *world, s *hungStore, h *hang) {
			x.ring("new", ringbuf.V4, 16)
			s.hang = h
		},
		"directory of an agent that may be gone": func(t *testing.T, x *world, _ *hungStore, h *hang) {
			x.pass(2 * DefaultStaleAfter)
			whole := openFolder
			hangDirectories(t, h)
			hanging := openFolder
			openFolder = func(dir, name string) (*ringbuf.Folder, error) { // the walk comes first
				openFolder = hanging
				return whole(dir, name)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, store, h := newWorld(t), &hungStore{memory: newMemory()}, newHang()
			ring := x.ring("agent", ringbuf.V4, 64)
			x.ring("other", ringbuf.V4, 64)
			w := x.open(store, nil)
			flush(t, w)
			transmitted(w)
			begin(t, x, store, h)
			scanned := make(chan struct{})
			go func() {
				defer close(scanned)
				w.Scan()
			}()
			<-h.reached
			push(t, ring, 50)
			within(t, "Drain", func() { w.Drain() })
			within(t, "a save", func() { w.save(t.Context()) })
			within(t, "Collect", func() { w.Collect(t.Context(), func(View) {}) })
			within(t, "State", func() {
				if err := w.State(); err != nil {
					t.Errorf("state is %v", err)
				}
			})
			within(t, "Agents", func() { transmitted(w) })
			close(h.ended)
			<-scanned
			flush(t, w)
			if n, _ := ring.Len(); n != 0 || transmitted(w)["agent"] != 50 || x.told(RingRetired) != 0 {
				t.Errorf("%d of 50 events are counted, %d left, notices %v", transmitted(w)["agent"], n, x.notices)
			}
		})
	}
}
