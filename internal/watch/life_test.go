//go:build linux && (amd64 || arm64)

package watch

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestAgentThatStartsAnewGoesOnWithItsTotals(t *testing.T) {
	for name, tc := range map[string]struct {
		layout   ringbuf.Layout
		capacity int
	}{
		"same":         {ringbuf.V4, 16},
		"smaller":      {ringbuf.V4, 8},
		"larger":       {ringbuf.V4, 64},
		"other layout": {ringbuf.V1, 16},
		"other size":   {ringbuf.V2Named, 32},
		"same size":    {ringbuf.V3, 16},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			push(t, x.ring("agent", ringbuf.V4, 16), 5)
			w := x.watcher(nil)
			w.Scan()
			w.Drain()
			before := view(t, w).Start

			x.pass(time.Second)
			anew := x.ring("agent", tc.layout, tc.capacity)
			w.Drain() // finds out
			push(t, anew, 3)
			w.Scan()
			w.Drain()
			v := view(t, w)
			if got := v.Tally.Size(0).Total().Int64(); got != 8 {
				t.Errorf("%d events of 8 were counted", got)
			}
			if v.Tally.Restarts() != 1 || v.Layout != tc.layout || v.Tally.Capacity() != tc.capacity || !v.Start.Equal(before) {
				t.Errorf("%d restarts, layout %v, %d slots, start %v", v.Tally.Restarts(), v.Layout, v.Tally.Capacity(), v.Start)
			}
		})
	}
}

// An agent that starts anew sets the file's size first. What the old header
// makes of it then is neither opened nor reported, even if it fits by chance.
func TestRingInTheMakingIsWaitedFor(t *testing.T) {
	for _, old := range []ringbuf.Layout{ringbuf.V1, ringbuf.V2Named} { // the latter shares its version with V2
		t.Run(old.String(), func(t *testing.T) {
			x := newWorld(t)
			ring := x.ring("agent", old, 16)
			push(t, ring, 5)
			w := x.watcher(nil)
			w.Scan()
			w.Drain()

			touch := func() {
				if err := os.Chtimes(ring.Path(), x.clock(), x.clock()); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(ring.Path(), 40+16*16); err != nil { // of V2, V3 and V4
				t.Fatal(err)
			}
			touch()
			w.Drain() // finds out
			w.Scan()
			w.Drain()
			anew := x.ring("agent", ringbuf.V4, 16)
			touch()
			push(t, anew, 3)
			x.pass(settling)
			w.retry()
			w.Drain()
			v := view(t, w)
			if got := v.Tally.Size(0).Total().Int64(); got != 8 || v.Tally.Restarts() != 1 || v.Layout != ringbuf.V4 {
				t.Errorf("%d events of 8 were counted, %d restarts, layout %v", got, v.Tally.Restarts(), v.Layout)
			}
			if x.told(RingRefused) != 0 {
				t.Errorf("notices %v", x.notices)
			}
		})
	}
}

func TestShrunkFileIsARestart(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 4096)
	push(t, ring, 4000)
	w := x.watcher(nil)
	w.Scan()
	if err := os.Truncate(ring.Path(), 0); err != nil {
		t.Fatal(err)
	}
	w.Drain()
	w.Scan()
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	w.Scan()
	w.Drain()
	v := view(t, w)
	if v.Tally.Size(0).Total().Int64() != 2 || v.Tally.Restarts() != 1 {
		t.Errorf("counted %d, %d restarts", v.Tally.Size(0).Total().Int64(), v.Tally.Restarts())
	}
}

func TestRemovedRingIsDrainedOn(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	if err := os.Remove(ring.Path()); err != nil {
		t.Fatal(err)
	}
	w.Scan()
	push(t, ring, 4)
	w.Drain()
	if got := transmitted(w)["agent"]; got != 4 {
		t.Errorf("%d events of 4 were counted", got)
	}
	x.pass(DefaultStaleAfter)
	w.Scan()
	if got := transmitted(w); len(got) != 0 || x.told(RingRemoved) != 1 || x.told(RingRetired) != 1 {
		t.Errorf("totals are %v, notices %v", got, x.notices)
	}
}

func TestReplacedRingIsFollowed(t *testing.T) {
	x := newWorld(t)
	old := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	push(t, old, 4)
	if err := os.Rename(old.Path(), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	w.Scan()
	w.Drain()
	v := view(t, w)
	if v.Tally.Size(0).Total().Int64() != 6 || v.Tally.Restarts() != 1 || x.told(RingReplaced) != 1 {
		t.Errorf("counted %d, %d restarts, notices %v", v.Tally.Size(0).Total().Int64(), v.Tally.Restarts(), x.notices)
	}
}

// What an agent left in its ring is more than one drain takes.
func TestReplacedRingIsTakenToItsEnd(t *testing.T) {
	x := newWorld(t)
	old := x.ring("agent", ringbuf.V4, 1<<18)
	w := x.watcher(nil)
	w.Scan()
	const events = 3*maxPass + 1
	push(t, old, events)
	if err := os.Remove(old.Path()); err != nil {
		t.Fatal(err)
	}
	x.ring("agent", ringbuf.V4, 8)
	w.Scan()
	if got := transmitted(w)["agent"]; got != events || x.told(RingReplaced) != 1 {
		t.Errorf("%d events of %d were counted, notices %v", got, events, x.notices)
	}
}

func TestForeignReaderIsNoticed(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	push(t, ring, 2)
	w := x.watcher(nil)
	w.Scan()
	w.Drain()
	push(t, ring, 5)
	stealRead(t, ring.Path(), 4) // somebody without our lock takes two of them
	w.Drain()
	w.Drain()
	v := view(t, w)
	if v.Tally.Size(0).Total().Int64() != 5 || v.Tally.ForeignReads() != 1 || x.told(RingForeign) != 1 {
		t.Errorf("counted %d, %d foreign reads, notices %v", v.Tally.Size(0).Total().Int64(), v.Tally.ForeignReads(), x.notices)
	}
}

// stealRead stores a read position as another consumer would.
func stealRead(t *testing.T, path string, position byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{position}, 8); err != nil {
		t.Fatal(err)
	}
}

func TestIdleAgentIsReportedAsLongAsItLives(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 1)
	w := x.watcher(nil)
	w.Scan()
	w.Drain()
	for range 3 {
		x.pass(DefaultStaleAfter)
		w.Scan()
		w.Drain()
	}
	if got := transmitted(w)["agent"]; got != 1 {
		t.Fatalf("an idle agent's total is %d", got)
	}
	push(t, ring, 1)
	w.Drain()
	if got := transmitted(w)["agent"]; got != 2 || view(t, w).Tally.Restarts() != 0 {
		t.Errorf("after it woke up its total is %d", got)
	}
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.pass(DefaultStaleAfter)
	w.Scan()
	if got := transmitted(w); len(got) != 0 || x.told(RingRetired) != 1 {
		t.Errorf("a dead agent is reported: %v", got)
	}
	w.Scan()
	if got := transmitted(w); len(got) != 0 {
		t.Errorf("what it left is opened again: %v", got)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 3)
	w.Scan()
	w.Drain()
	if got := transmitted(w)["agent"]; got != 3 {
		t.Errorf("after it started anew its total is %d", got)
	}
}

func TestFullRingIsReportedOnceWithAdvice(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	for range 3 {
		push(t, ring, 7)
		if w.round() == atLeisure {
			t.Error("a full ring doesn't hurry the next drain")
		}
	}
	if n := x.await(RingFull); !strings.Contains(n.Text, "NIXL_TELEMETRY_BUFFER_SIZE=16 ") {
		t.Errorf("advice is %q", n.Text)
	}
	v := view(t, w)
	if v.Tally.Saturations() != 3 || v.Tally.Utilization() != 1 || x.told(RingFull) != 1 {
		t.Errorf("%d saturations, utilization %v, %d notices", v.Tally.Saturations(), v.Tally.Utilization(), x.told(RingFull))
	}
}

func TestRingsOfOthersAreRefused(t *testing.T) {
	x := newWorld(t)
	x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(func(c *Config) { c.AllowedUIDs = []uint32{uint32(os.Geteuid()) + 1} })
	w.Scan()
	if n := x.await(RingRefused); len(transmitted(w)) != 0 || n.Level != slog.LevelWarn {
		t.Errorf("notice is %v", n)
	}
}

// A living agent that has nothing to do isn't given up because a look through
// its directory didn't find its ring.
func TestRingOutOfSightIsKept(t *testing.T) {
	for name, hide := range map[string]func(t *testing.T, x *world, w *Watcher){
		"directory not read to its end": func(_ *testing.T, _ *world, w *Watcher) {
			w.scanning.Lock()
			defer w.scanning.Unlock()
			w.sweep(nil)
		},
		"directory away for a while": func(t *testing.T, x *world, w *Watcher) {
			away := filepath.Join(t.TempDir(), "away")
			if err := os.Rename(x.dir, away); err != nil {
				t.Fatal(err)
			}
			w.Scan()
			if err := os.Rename(away, x.dir); err != nil {
				t.Fatal(err)
			}
			w.Scan()
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			ring := x.ring("agent", ringbuf.V4, 8)
			push(t, ring, 1)
			w := x.watcher(nil)
			w.Scan()
			w.Drain()
			hide(t, x, w)
			transmitted(w)
			w.Delivered()
			x.pass(DefaultStaleAfter)
			w.Scan()
			push(t, ring, 1)
			w.Drain()
			if got := transmitted(w)["agent"]; got != 2 || x.told(RingRetired) != 0 {
				t.Errorf("%d events of 2 were counted, notices %v", got, x.notices)
			}
		})
	}
}
