//go:build linux && (amd64 || arm64)

package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Who may write to a ring can break it, or have it start anew, time and again.
func TestNobodyCanFillTheLogByOneRing(t *testing.T) {
	for name, tc := range map[string]struct {
		kind Kind
		harm func(t *testing.T, x *world, w *Watcher, ring *ringbuf.Writer)
	}{
		"broken": {RingBroken, func(t *testing.T, _ *world, w *Watcher, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos = 99 })
			w.Drain()
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos = 0 })
		}},
		"restarted": {RingRestart, func(t *testing.T, _ *world, w *Watcher, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos = 5 })
			w.Drain()
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos, h.ReadPos = 0, 0 })
			w.Drain()
		}},
		"replaced": {RingReplaced, func(t *testing.T, x *world, _ *Watcher, ring *ringbuf.Writer) {
			if err := os.Remove(ring.Path()); err != nil {
				t.Fatal(err)
			}
			x.ring("agent", ringbuf.V4, 16)
		}},
		"removed": {RingRemoved, func(t *testing.T, _ *world, w *Watcher, ring *ringbuf.Writer) {
			away := ring.Path() + ".away"
			rename(t, ring.Path(), away)
			w.lookAt(ring.Path())
			w.lookAt(away)
			rename(t, away, ring.Path())
			w.lookAt(away)
		}},
		"refused": {RingRefused, func(t *testing.T, x *world, w *Watcher, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 5 })
			w.Drain()
			x.pass(settling)
			w.Scan()
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 4 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			ring := x.ring("agent", ringbuf.V4, 16)
			w := x.watcher(nil)
			w.Scan()
			const times = 50
			for range times {
				tc.harm(t, x, w, ring)
				x.pass(settling)
				w.Scan()
			}
			if n := len(x.notices); x.told(tc.kind) == 0 || n > 6 {
				t.Errorf("%d notices of %d times: %v", n, times, x.notices)
			}
			x.pass(sayAgain)
			before := len(x.notices)
			tc.harm(t, x, w, ring)
			x.pass(settling)
			w.Scan()
			if len(x.notices) == before {
				t.Error("nothing is said after a minute")
			}
			if tc.kind == RingRefused {
				return // how often that was isn't kept
			}
			if n := x.notices[before]; n.Kind != tc.kind || !strings.Contains(n.Message(), " times more since that was last said)") {
				t.Errorf("after a minute it is said: %v", n)
			}
		})
	}
}

// What a restart brings is said where the restart was.
func TestRingOfAnAgentThatStartsAnewIsTold(t *testing.T) {
	x := newWorld(t)
	path := x.ring("agent", ringbuf.V4, 16).Path()
	w := x.watcher(nil)
	w.Scan()
	if err := os.Rename(path, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	x.ring("agent", ringbuf.V4, 32)
	w.Scan()
	if n := x.notices[len(x.notices)-1]; n.Kind != RingOpened || !strings.Contains(n.Text, "32 slots") {
		t.Errorf("the last notice is %v", n)
	}
}
