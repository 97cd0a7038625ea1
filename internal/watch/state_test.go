//go:build linux && (amd64 || arm64)

package watch

import (
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A watcher that had rings, and has lost them all, can do as little as one that
// never had any.
func TestStateWhereAKnownRingCantBeOpenedAnyMore(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	if err := w.State(); err != nil {
		t.Fatalf("state is %v", err)
	}
	// The agent comes back as a release that isn't known.
	ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 5 })
	w.Drain()
	w.Scan()
	if err := w.State(); err == nil || !strings.Contains(err.Error(), "none of 1 rings can be opened; the first: ") {
		t.Errorf("state is %v", err)
	}
	push(t, x.ring("another", ringbuf.V4, 8), 1)
	w.Scan()
	if err := w.State(); err != nil {
		t.Errorf("state is %v though a ring is open", err)
	}
}
