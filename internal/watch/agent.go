package watch

import (
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Agent is one agent: a name in a directory, its ring, and its totals.
type Agent struct {
	Name string // the ring's path within the directory, as the agent was named
	Dir  string
	Path string

	key  string         // of its checkpoint
	file ringbuf.FileID // of the ring that it has, or had last; the scan loop's alone

	mu        sync.Mutex          // guards what follows
	reader    *ringbuf.Reader     // set by Watcher.give
	count     func(ringbuf.Batch) // adds to tally; made once, so that a drain allocates nothing
	counted   bool                // whether count was called
	tally     *tally.Agent
	layout    ringbuf.Layout
	host      string    // that instance was reckoned for
	instance  string    // see InstanceID; empty until somebody asks
	start     time.Time // when the ring was first opened
	lastEvent time.Time // or start
	shown     time.Time // lastEvent, as it was when the totals were last handed out
	delivered time.Time // and as it was in those that arrived
	removed   bool      // the name has no file any more
	idle      bool      // without an event for long, and maybe gone
	asked     bool      // its ring was let go, for a moment, to find out whether it is gone
	dirty     bool      // has changed since its checkpoint, though nothing is uncommitted
	turn      uint      // counts the times that the ring was committed without a checkpoint
	relieved  time.Time // when the ring was last committed, or opened
	filled    time.Time // when the ring was last found more than half full
	burst     int       // the most events that a drain of late has found new
	tellings  map[Kind]telling
	unsaid    bool // what happened last wasn't told, and what comes of it needn't be
	toldFull  bool
	toldAlien bool
	toldSlow  bool
}

func newAgent(p place, cfg *Config, shape *tally.Shape, now time.Time) *Agent {
	a := &Agent{Name: p.name, Dir: p.dir, Path: p.path, key: agentKey(p.path), tally: tally.NewAgent(shape), start: now, lastEvent: now}
	tap := cfg.Tap
	a.count = func(b ringbuf.Batch) {
		a.counted = true
		a.tally.Add(b)
		if tap != nil {
			tap(a, b)
		}
	}
	return a
}

// View is what an agent looks like while [Watcher.Agents] holds it still.
type View struct {
	*Agent
	Tally  *tally.Agent
	Layout ringbuf.Layout
	Start  time.Time // of the totals
	// Up reports whether another process has the ring open; nil if unknown.
	Up *bool
}

// place is where the agent's ring is.
func (a *Agent) place() place { return place{dir: a.Dir, name: a.Name, path: a.Path} }

// attach gives the agent, which is locked, a ring that was just opened.
func (w *Watcher) attach(a *Agent, r *ringbuf.Reader, now time.Time) {
	w.give(a, r)
	a.removed, a.idle, a.toldFull, a.toldAlien = false, false, false, false
	a.lastEvent, a.relieved = now, now
	a.tally.Found(0, r.Capacity())
}

// ring is the agent's ring, nil if it has none. Of a ring that may be taken from
// the agent at any time only what never changes may be asked. The scan loop may
// ask for its file too, as it alone closes rings.
func (a *Agent) ring() *ringbuf.Reader {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reader
}

// open says whether the agent has a ring, or is to have it back in a moment.
func (a *Agent) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reader != nil || a.asked
}

// detach takes the ring from an agent, which is locked. The totals stay.
func (w *Watcher) detach(a *Agent) { w.give(a, nil) }

// give replaces the ring of an agent, which is locked. The one that it had is
// left to be closed. A look over all rings, which locks no agent, is over by
// then.
func (w *Watcher) give(a *Agent, r *ringbuf.Reader) {
	w.looking.Lock()
	if a.reader != nil {
		w.left = append(w.left, a.reader)
	}
	a.reader = r
	w.looking.Unlock()
	if r != nil {
		a.layout = r.Layout()
	}
}

// closeLeft closes the rings that agents don't have any more. Like all that
// asks the file system it is done by the scan loop, with no agent locked: a
// file system that hangs would hold up the drain loop.
func (w *Watcher) closeLeft() {
	w.looking.Lock()
	left := w.left
	w.left = nil
	w.looking.Unlock()
	for _, r := range left {
		_ = r.Close() // nothing was written, and nothing depends on it
	}
}
