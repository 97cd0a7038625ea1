//go:build linux && (amd64 || arm64)

package watch

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A backend may be down for longer than StaleAfter. What agents did that came
// and went meanwhile is kept for it.
func TestAgentIsKeptUntilItsEventsAreDelivered(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	push(t, ring, 4)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	w.Drain()
	for range 3 {
		x.pass(2 * DefaultStaleAfter)
		w.Scan()
		shown := 0
		w.Agents(func(View) { shown++ })
		if shown != 1 {
			t.Fatal("the agent is gone before its events were delivered")
		}
	}
	if got := transmitted(w)["agent"]; got != 4 {
		t.Errorf("%d events of 4 were counted", got)
	}
	w.Scan()
	if got := transmitted(w); len(got) != 0 || x.told(RingRetired) != 1 {
		t.Errorf("a dead agent is reported after its events were delivered: %v", got)
	}
}

// What was shown first and drained later was not delivered.
func TestEventsAfterADeliveryKeepTheAgent(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	w.Agents(func(View) {})
	push(t, ring, 2)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.pass(1)
	w.Drain()
	w.Delivered()
	x.pass(DefaultStaleAfter)
	w.Scan()
	if got := transmitted(w)["agent"]; got != 2 {
		t.Errorf("%d events of 2 were counted", got)
	}
}

// An idle agent may wake up, write and go between a drain and the scan that
// takes leave of it.
func TestLastWordsAreHeard(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.watcher(nil)
	w.Scan()
	w.Drain()
	transmitted(w)
	x.pass(DefaultStaleAfter)
	push(t, ring, 3)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	w.Scan()
	if got := transmitted(w)["agent"]; got != 3 {
		t.Errorf("%d events of 3 were counted", got)
	}
}

// A store that fails doesn't keep agents that are gone: they would take up the
// places of others, and the memory of rings that nobody else can see.
func TestAgentsAreRetiredThoughTheStoreFails(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.open(store, nil)
	flush(t, w)
	store.fail(errors.New("disk full"))
	push(t, ring, 3)
	if got := transmitted(w)["agent"]; got != 0 {
		t.Fatalf("%d bytes before they were read", got)
	}
	flush(t, w)
	if got := transmitted(w)["agent"]; got != 3 {
		t.Errorf("%d bytes, want 3", got)
	}
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.pass(2 * DefaultStaleAfter)
	w.Scan()
	if x.told(RingRetired) != 1 {
		t.Error("the agent is kept")
	}
	if h := ringtest.ReadHeader(t, ring.Path()); h.ReadPos != 3 {
		t.Errorf("read position %d, want 3: the events would be counted again", h.ReadPos)
	}
}

// What a store that fails was to forget of an agent it forgets once it works.
func TestRetiredAgentIsForgottenByAStoreThatFailed(t *testing.T) {
	x, store := newWorld(t), newMemory()
	ring := x.ring("agent", ringbuf.V4, 8)
	w := x.open(store, nil)
	flush(t, w)
	w.Delivered()
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.pass(2 * DefaultStaleAfter)
	w.Scan()
	if x.told(RingRetired) != 1 {
		t.Fatal("the agent isn't retired")
	}
	for _, fails := range []error{errors.New("disk full"), nil} {
		store.fail(fails)
		w.save(t.Context())
	}
	if left := store.agents(); len(left) != 0 {
		t.Errorf("there are checkpoints of %v", left)
	}
}

// idleFor is a watcher whose one agent has written nothing for so long that it is
// asked about, with all that it wrote delivered.
func (x *world) idleFor(d time.Duration) (*Watcher, *ringbuf.Writer) {
	ring := x.ring("agent", ringbuf.V4, 64)
	w := x.watcher(nil)
	w.Scan()
	push(x.t, ring, 1)
	w.Drain()
	transmitted(w)
	x.pass(d)
	return w, ring
}

// The drain loop may drain an agent while it is asked about. What it finds is
// reported, whatever the answer.
func TestEventsWhileTheQuestionIsAsked(t *testing.T) {
	for name, tc := range map[string]struct{ removed, known bool }{
		"gone": {false, true}, "removed": {true, true}, "nobody knows": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			w, ring := x.idleFor(2 * DefaultStaleAfter)
			a := (*w.rings.Load())[0]
			if tc.removed {
				if err := os.Remove(ring.Path()); err != nil {
					t.Fatal(err)
				}
				w.vanished(a)
			}
			q := inquiry{Agent: a, now: x.clock()}
			if !w.stale(&q) {
				t.Fatal("the agent isn't asked about")
			}
			q.lookUp()
			defer q.folder.Close()
			if !w.letGo(&q) {
				t.Fatal("the question can't be asked")
			}
			w.alive(&q)
			x.pass(time.Millisecond)
			push(t, ring, 3)
			w.Drain()
			if w.concluded(&q, false, tc.known) {
				t.Error("the agent is retired")
			}
			if got := transmitted(w)["agent"]; got != 4 {
				t.Errorf("%d bytes, want 4", got)
			}
		})
	}
}

// An agent may start anew on its file at any moment of its being retired.
func TestAgentStartsAnewWhileItIsRetired(t *testing.T) {
	opened := openFolder
	t.Cleanup(func() { openFolder = opened })
	for at := 1; at <= 3; at++ {
		x := newWorld(t)
		w, ring := x.idleFor(2 * DefaultStaleAfter)
		if err := ring.Close(); err != nil {
			t.Fatal(err)
		}
		calls := 0
		openFolder = func(dir, name string) (*ringbuf.Folder, error) {
			if calls++; calls == at {
				ring = x.ring("agent", ringbuf.V4, 64)
				push(t, ring, 2)
			}
			return opened(dir, name)
		}
		w.Scan()
		openFolder = opened
		if calls < at {
			ring = x.ring("agent", ringbuf.V4, 64)
			push(t, ring, 2)
		}
		for range 3 {
			x.pass(time.Second)
			w.Scan()
			w.Drain()
		}
		if n, _ := ring.Len(); n != 0 {
			t.Errorf("folder %d of %d: %d events are not read", at, calls, n)
		}
	}
}

// Where the folder can't be opened an agent keeps its ring.
func TestAgentKeepsItsRingWithoutItsFolder(t *testing.T) {
	opened := openFolder
	t.Cleanup(func() { openFolder = opened })
	x := newWorld(t)
	w, ring := x.idleFor(2 * DefaultStaleAfter)
	openFolder = func(string, string) (*ringbuf.Folder, error) { return nil, syscall.EMFILE }
	w.Scan()
	push(t, ring, 5)
	w.Drain()
	if n, _ := ring.Len(); n != 0 {
		t.Errorf("%d events are not read", n)
	}
}
