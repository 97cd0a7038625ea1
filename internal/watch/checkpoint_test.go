//go:build linux && (amd64 || arm64)

package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// open is a watcher with a store that has looked for rings; nothing runs beside
// the test.
func (x *world) open(store Store, change func(*Config)) *Watcher {
	x.t.Helper()
	w := x.watcher(change)
	w.store = store
	w.Scan()
	return w
}

// crash ends a watcher as kill -9 would: nothing is drained, stored or
// committed any more.
func crash(w *Watcher) { w.Close() }

func TestEventsStayInTheRingUntilTheyAreStored(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	push(t, ring, 5)
	w := x.open(store, nil)
	w.Drain()
	if n, _ := ring.Len(); n != 5 || transmitted(w)["agent"] != 5 {
		t.Errorf("the ring holds %d, %d are counted", n, transmitted(w)["agent"])
	}
	store.before = func() {
		if n, _ := ring.Len(); n != 5 {
			t.Errorf("before the checkpoint is stored the ring holds %d", n)
		}
	}
	flush(t, w)
	if n, _ := ring.Len(); n != 0 {
		t.Errorf("after the checkpoint is stored the ring holds %d", n)
	}
}

func TestSaveIsAskedForInTime(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(newMemory(), nil)
	flush(t, w) // stores that there is an agent
	asked(w)
	push(t, ring, 3)
	if w.Drain(); asked(w) {
		t.Error("a save is asked for at once")
	}
	push(t, ring, 1)
	if w.Drain(); asked(w) {
		t.Error("a save is asked for right after another")
	}
	x.pass(w.drainInterval / 2)
	if w.Drain(); !asked(w) {
		t.Error("no save is asked for when a quarter of the ring is held")
	}
	if w.Drain(); asked(w) {
		t.Error("a save is asked for twice")
	}
	w.save(t.Context())
	push(t, ring, 1)
	x.pass(saveEvery - time.Millisecond)
	if w.Drain(); asked(w) {
		t.Error("a save is asked for early")
	}
	x.pass(time.Millisecond)
	if w.Drain(); !asked(w) {
		t.Error("no save is asked for after a second")
	}
}

// TestCrashAtEachStep kills the watcher at every step from reading to
// committing, at every position of the ring, and expects the totals to come
// out the same.
func TestCrashAtEachStep(t *testing.T) {
	steps := map[string]func(*testing.T, *Watcher, *memory){
		"before reading": func(*testing.T, *Watcher, *memory) {},
		"after reading":  func(_ *testing.T, w *Watcher, _ *memory) { w.Drain() },
		"store fails": func(t *testing.T, w *Watcher, m *memory) {
			w.Drain()
			m.fail(errors.New("disk full"))
			w.save(t.Context())
			m.fail(nil)
		},
		"after storing": func(t *testing.T, w *Watcher, _ *memory) {
			w.Drain()
			ops, _ := w.checkpoints(w.cfg.Now(), nil)
			if err := w.store.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
		},
		"after committing": func(t *testing.T, w *Watcher, _ *memory) { flush(t, w) },
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			x, store := newWorld(t), newMemory()
			ring := x.ring("agent", ringbuf.V4, 8)
			total, start := 0, x.clock()
			for round := range 20 {
				w := x.open(store, nil)
				push(t, ring, round%4)
				total += round % 4
				step(t, w, store)
				crash(w)
				x.pass(time.Minute)
				w = x.open(store, nil)
				flush(t, w)
				v := view(t, w)
				if got := v.Tally.Size(0).Total().Int64(); got != int64(total) || v.Tally.Restarts() != 0 || v.Tally.ForeignReads() != 0 {
					t.Fatalf("round %d: %d counted, not %d; %d restarts, %d foreign reads",
						round, got, total, v.Tally.Restarts(), v.Tally.ForeignReads())
				}
				if n, _ := ring.Len(); n != 0 {
					t.Fatalf("round %d: %d events are left in the ring", round, n)
				}
				if round > 0 && !v.Start.Equal(start) {
					t.Fatalf("round %d: totals start at %v, not %v", round, v.Start, start)
				}
				start = v.Start
				crash(w)
			}
		})
	}
}

func TestRestartWhileNobodyWatched(t *testing.T) {
	for name, committed := range map[string]bool{"after a commit": true, "in the first commit": false} {
		t.Run(name, func(t *testing.T) {
			x, store := newWorld(t), newMemory()
			push(t, x.ring("agent", ringbuf.V4, 8), 3)
			w := x.open(store, nil)
			w.Drain()
			ops, positions := w.checkpoints(x.clock(), nil)
			if err := store.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			if committed {
				w.commit(positions[0])
			}
			crash(w)
			anew := x.ring("agent", ringbuf.V4, 8)
			for range 4 {
				if err := anew.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 10)); err != nil {
					t.Fatal(err)
				}
			}
			w = x.open(store, nil)
			flush(t, w)
			v := view(t, w)
			if got := v.Tally.Size(0).Total().Int64(); got != 43 || v.Tally.Restarts() != 1 {
				t.Errorf("%d counted, not 43; %d restarts", got, v.Tally.Restarts())
			}
		})
	}
}

func TestForeignReadWhileNobodyWatched(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	push(t, ring, 3)
	w := x.open(store, nil)
	flush(t, w)
	crash(w)
	push(t, ring, 5)
	stealRead(t, ring.Path(), 6)
	w = x.open(store, nil)
	flush(t, w)
	v := view(t, w)
	if got := v.Tally.Size(0).Total().Int64(); got != 5 || v.Tally.ForeignReads() != 1 || x.told(RingForeign) != 1 {
		t.Errorf("%d counted, not 5; %d foreign reads; notices %v", got, v.Tally.ForeignReads(), x.notices)
	}
}

func TestRestartLosesNothingThatWasRead(t *testing.T) {
	x, store := newWorld(t), newMemory()
	push(t, x.ring("agent", ringbuf.V4, 16), 3)
	w := x.open(store, nil)
	flush(t, w)
	push(t, x.ring("agent", ringbuf.V4, 16), 2)
	w.Drain() // sees the restart
	w.Scan()
	w.Drain() // reads, doesn't commit
	x.ring("agent", ringbuf.V4, 16)
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	w.Drain() // sees the next
	w.save(t.Context())
	crash(w)
	w = x.open(store, nil)
	flush(t, w)
	v := view(t, w)
	if got := v.Tally.Size(0).Total().Int64(); got != 6 || v.Tally.Restarts() != 2 {
		t.Errorf("%d counted, not 6; %d restarts", got, v.Tally.Restarts())
	}
}

func TestRingsGoOnWithoutAStoreThatFails(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(store, nil)
	store.fail(errors.New("disk full"))
	for range 10 {
		push(t, ring, 13)
		w.Drain()
		w.save(t.Context())
		w.Drain()
	}
	if got := transmitted(w)["agent"]; got != 130 || x.told(StoreFailed) != 1 {
		t.Errorf("%d counted of 130, %d notices", got, x.told(StoreFailed))
	}
	store.fail(nil)
	flush(t, w)
	crash(w)
	w = x.open(store, nil)
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 130 {
		t.Errorf("%d after the store is back", got)
	}
}

func TestStalledStoreDoesntHoldUpDrains(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(store, nil)
	push(t, ring, 4)
	w.Drain()
	stalled, release := make(chan struct{}), make(chan struct{})
	store.before = func() {
		close(stalled)
		<-release
		store.before = nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.save(t.Context())
	}()
	<-stalled
	for range 2 { // the first may have been a pause of the process
		x.pass(time.Second)
		w.Drain()
	}
	for range 5 {
		push(t, ring, 11)
		w.Drain()
	}
	close(release)
	<-done
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 59 {
		t.Errorf("%d counted of 59", got)
	}
	crash(w)
	w = x.open(store, nil)
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 59 {
		t.Errorf("%d counted of 59 after a crash", got)
	}
}

func TestCheckpointsOfGoneAgentsAreRemoved(t *testing.T) {
	x, store := newWorld(t), newMemory()
	gone, lives := x.ring("gone\xff", ringbuf.V4, 8), x.ring("lives", ringbuf.V4, 8)
	push(t, gone, 1)
	push(t, lives, 1)
	w := x.open(store, nil)
	flush(t, w)
	if got := store.agents(); len(got) != 2 {
		t.Fatalf("checkpoints are %v", got)
	}
	crash(w)
	if err := os.Remove(gone.Path()); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, DefaultStaleAfter} {
		x.pass(wait)
		w = x.open(store, nil)
		w.sweepStore(t.Context())
		flush(t, w)
		crash(w)
		if got := len(store.agents()); got != 2 && wait == 0 || got != 1 && wait > 0 {
			t.Errorf("after %v there are %d checkpoints", wait, got)
		}
	}
}

func TestUselessCheckpointsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*memory, string)
		want  int64 // counted after the crash
	}{
		"none":        {func(*memory, string) {}, 4},
		"garbage":     {func(m *memory, key string) { m.values[key] = []byte("garbage") }, 1},
		"other time":  {func(m *memory, key string) { m.values[key][0] = 99 }, 1},
		"cut totals":  {func(m *memory, key string) { m.values[key] = m.values[key][:len(m.values[key])-3] }, 1},
		"from future": {func(m *memory, key string) { m.values[key] = append(m.values[key], 1) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			x, store := newWorld(t), newMemory()
			ring := x.ring("agent", ringbuf.V4, 8)
			push(t, ring, 3)
			w := x.open(store, nil)
			flush(t, w)
			crash(w)
			tc.spoil(store, agentKey(ring.Path()))
			push(t, ring, 1)
			w = x.open(store, nil)
			flush(t, w)
			told := x.told(StoreFailed)
			if got := transmitted(w)["agent"]; got != tc.want || (told == 1) != (tc.want == 1) {
				t.Errorf("%d counted, not %d; %d notices", got, tc.want, told)
			}
		})
	}
}

func TestOtherHistogramsStartTotalsAnewAndDoubleNothing(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 3)
	w := x.open(store, nil)
	w.Drain()
	ops, _ := w.checkpoints(x.clock(), nil)
	if err := store.Apply(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	crash(w) // with the commit outstanding
	w = x.open(store, func(c *Config) { c.Tally.Size = tally.HistogramConfig{Kind: tally.Exponential} })
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 0 || x.told(StoreFailed) != 1 {
		t.Errorf("%d counted again, notices %v", got, x.notices)
	}
}

// A save that the end of the watcher interrupts isn't a store that fails.
func TestSaveThatIsInterruptedIsNoFailure(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 16)
	w := x.open(store, nil)
	flush(t, w)
	push(t, ring, 3)
	w.Drain()
	ctx, cancel := context.WithCancel(t.Context())
	store.before = func() {
		cancel()
		store.err = ctx.Err()
	}
	w.save(ctx)
	if n := x.told(StoreFailed); n != 0 || w.failed.Load() {
		t.Errorf("%d notices of a failure", n)
	}
	store.before, store.err = nil, nil
	flush(t, w)
	if n, _ := ring.Len(); n != 0 {
		t.Errorf("%d events are still in the ring", n)
	}
}

// What is written field by field is read as a whole.
func TestMarkIsReadAsWritten(t *testing.T) {
	m := mark{
		Version: markVersion, Layout: ringbuf.V3, Dev: 1 << 40, Ino: 2 << 40, Capacity: 4096,
		From: 5, To: 6, Fingerprint: 7 << 24, Start: 8 << 50, Saved: 9 << 50,
	}
	c, err := parseCheckpoint(append(m.append(nil), "totals"...))
	if err != nil {
		t.Fatal(err)
	}
	if c.mark != m || string(c.totals) != "totals" {
		t.Errorf("%+v and %q, not %+v", c.mark, c.totals, m)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	m := mark{Version: markVersion, Layout: ringbuf.V4, Capacity: 8, To: 3}
	stored := append(m.append(nil), "totals"...)
	f.Add(stored)
	f.Add([]byte(nil))
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		c, err := parseCheckpoint(stored)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "agent")
		ring, err := ringbuf.Create(path, ringbuf.V4, 8)
		if err != nil {
			t.Fatal(err)
		}
		defer ring.Close()
		r, err := ringbuf.OpenReader(path, ringbuf.Consume)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		// Whatever it says, it leads nowhere outside the ring.
		c.Dev, c.Ino = r.ID().Dev, r.ID().Ino
		if _, err := c.resume(r); err == nil && r.Position() > 7 {
			t.Errorf("resumed at %d", r.Position())
		}
		_ = c.restore(newAgent(place{path: path}, &Config{}, shape, time.Time{}), shape)
	})
}
