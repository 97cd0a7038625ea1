//go:build linux && (amd64 || arm64)

package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// A ring that is renamed goes on under the name that its agent has, in either
// mode, whichever of the names is looked at first.
func TestRenamedRingGoesOnUnderItsName(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		for _, first := range []string{"agent", "renamed"} {
			t.Run(mode.String()+", "+first, func(t *testing.T) {
				x := newWorld(t)
				ring := x.ring("agent", ringbuf.V4, 16)
				push(t, ring, 1)
				w := x.watcher(func(c *Config) { c.Mode = mode })
				w.Scan()
				w.Drain()
				renamed := filepath.Join(x.dir, "renamed")
				rename(t, ring.Path(), renamed)
				w.lookAt(filepath.Join(x.dir, first))
				push(t, ring, 2)
				w.Scan()
				w.Scan()
				w.Drain()
				if diff := cmp.Diff(map[string]int64{"agent": 3}, transmitted(w)); diff != "" {
					t.Error(diff)
				}
				if err := w.State(); err != nil || x.told(RingRefused) != 0 || x.told(RingRemoved) != 2 {
					t.Errorf("state is %v, notices %v", err, x.notices)
				}
				n := x.notices[len(x.notices)-1]
				if first == "renamed" {
					n = x.notices[len(x.notices)-2]
				}
				if n.Path != renamed || !strings.Contains(n.Text, ring.Path()) {
					t.Errorf("notice is %v", n)
				}
			})
		}
	}
}

// When the agent starts anew its ring has the old name. What is left under the
// new one is a ring of its own then, without an event that wasn't counted.
func TestAgentOfARenamedRingStartsAnew(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	push(t, ring, 1)
	w := x.open(store, nil)
	flush(t, w)
	renamed := filepath.Join(x.dir, "renamed")
	rename(t, ring.Path(), renamed)
	push(t, ring, 2)
	w.Scan()
	push(t, x.ring("agent", ringbuf.V4, 16), 4)
	w.Scan()
	w.Scan()
	flush(t, w)
	if diff := cmp.Diff(map[string]int64{"agent": 7, "renamed": 0}, transmitted(w)); diff != "" {
		t.Error(diff)
	}
}

func TestRingsThatSwapNames(t *testing.T) {
	x := newWorld(t)
	a, b := x.ring("a", ringbuf.V4, 16), x.ring("b", ringbuf.V4, 16)
	w := x.watcher(nil)
	w.Scan()
	push(t, a, 1)
	push(t, b, 2)
	rename(t, a.Path(), filepath.Join(x.dir, "c"))
	rename(t, b.Path(), a.Path())
	rename(t, filepath.Join(x.dir, "c"), b.Path())
	w.Scan()
	push(t, a, 1)
	push(t, b, 2)
	w.Scan()
	w.Drain()
	if diff := cmp.Diff(map[string]int64{"a": 2, "b": 4}, transmitted(w)); diff != "" || x.told(RingRefused) != 0 {
		t.Errorf("notices %v, %s", x.notices, diff)
	}
}

// A ring with two names has one agent. The other name is free once the ring is
// closed.
func TestRingWithTwoNames(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.watcher(nil)
	w.Scan()
	if err := os.Link(ring.Path(), filepath.Join(x.dir, "link")); err != nil {
		t.Skip(err)
	}
	push(t, ring, 1)
	w.Scan()
	w.Scan()
	w.Drain()
	if diff := cmp.Diff(map[string]int64{"agent": 1}, transmitted(w)); diff != "" || x.told(RingRefused) != 0 {
		t.Errorf("notices %v, %s", x.notices, diff)
	}
	rename(t, filepath.Join(x.dir, "link"), filepath.Join(x.dir, "other"))
	x.pass(DefaultStaleAfter)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	w.Scan()
	if x.told(RingRetired) != 1 || len(w.files) != 0 {
		t.Errorf("%d files, notices %v", len(w.files), x.notices)
	}
	w.Scan()
	if diff := cmp.Diff(map[string]int64{"other": 0}, transmitted(w)); diff != "" {
		t.Error(diff)
	}
}
