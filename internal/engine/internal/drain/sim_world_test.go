// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/lab/mutate/atomic"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world simulates everything outside the owner: agents, files, a store and another consumer.
// It also records what happened to every event.
type world struct {
	*rand.Rand
	plan  plan
	now   time.Time
	shape *tally.Shape
	trace []string

	files  map[string]*simFile
	agents []*simAgent

	observers map[*simFile]*simObserver
	raced     int               // number of times that an agent ran during a call of a reader
	opening   bool              // a reader opens a ring
	racing    bool              // an agent runs during a call of a reader
	doomed    bool              // the Collector crashes soon
	values    [64][]byte        // in the storage extension, by the number of the page
	store     map[string]stored // what they contain, by path

	process *process // nil while the Collector is down

	// The expected results.
	lastID   uint64
	lastRun  int
	written  map[uint64]string              // event to path
	valueOf  map[uint64]uint64              // event to value
	runs     map[uint64]int                 // event to run
	stored   map[uint64]time.Time           // event to time when its slot was written, before it was pushed
	live     map[*simFile]map[uint64]uint64 // content of each file: slot to event
	known    map[string]int                 // the last agent of each path that the owner knows to have started
	counted  map[string]lineage             // events in the current totals of each path
	earlier  map[uint64]bool                // events in earlier totals
	begun    map[string]int                 // agents of each path that have begun to start
	visible  map[string]int                 // begun when positions last showed a restart to the process
	heard    map[string]int                 // begun when a restart was last reported
	restarts map[string]uint64              // restarts that the current totals of each path include
	gone     map[string]uint64              // the newest collection before the agent of a path was retired
	began    map[string]int64               // when the totals of each path can have begun at the earliest, in nanoseconds
	ended    map[string]streams             // predecessors of each path that were delivered
	taken    map[string]bool                // paths whose events another consumer has taken
	back     map[string]bool                // paths of rings whose position another consumer has moved backward
	released map[string]bool                // paths whose rings the owner has set to position 0
	usage    map[string]usage               // of each path
	takes    map[*simFile]int               // number of times since that or a restart was last reported
	found    map[string]time.Time           // when events of each path were last counted
	lost     map[uint64]loss
	notices  []seen
	kinds    map[notice.Kind]int
	errs     []string
}

// lineage is the set of events that totals have counted.
type lineage map[uint64]bool

// loss is why an event will never be counted.
type loss struct {
	why     string
	path    string
	at      time.Time
	watched bool // whether a reader had the ring open
}

// seen is a notice that was reported.
type seen struct {
	notice.Notice
	at time.Time
}

// stored is what an entry contains, and the events that its totals have counted.
type stored struct {
	lineage  lineage
	known    int // value of known when it was saved
	restarts uint64
	began    int64 // value of began
	mark     checkpoint.Mark
}

// plan selects the faults of a run.
type plan struct {
	saves                              bool
	restarts, pauses, foreign, crashes bool
	slow, failing, hanging             bool // faults of the store
	layouts                            bool // agents change layout and capacity
	containers                         bool // containers are removed with their rings, and files are replaced
	closes                             bool // rings of exited agents are closed
	leaseless                          bool // the kernel can't tell whether an agent runs
	jumps, breaks                      bool // long pauses; headers that are invalid for some time
	observers                          bool // other processes read rings without consuming
	races                              bool // agents also run during the calls of a reader
	often                              int  // how often: before one of this many accesses to the header
	onePage                            bool // the checkpoints of all agents have one storage key
	reorders                           bool // agents' stores become visible in another order during these calls
	ambush                             bool // agents make many steps at once, also during the calls of a reader
	lates                              bool // what discovery reports arrives late, also after the ring was replaced
	streams                            bool // attributes of agents change, and are found later
	limits                             bool // containers cause too much work
	exports                            bool // the Collector exports a last collection before it stops
	values                             int  // see newValue
	staleAfter                         time.Duration
	agents, steps                      int
}

func newPlan(r *rand.Rand) plan {
	some := func() bool { return r.IntN(2) == 0 }
	p := plan{
		saves: r.IntN(4) > 0, restarts: some(), pauses: some(), foreign: r.IntN(4) == 0, crashes: some(),
		slow: some(), failing: r.IntN(4) == 0, hanging: r.IntN(6) == 0, layouts: some(),
		agents: 1 + r.IntN(3), steps: 200 + r.IntN(1200),
	}
	p.containers, p.closes, p.values = r.IntN(3) == 0, r.IntN(3) == 0, max(0, r.IntN(6)-2)
	p.leaseless, p.jumps, p.breaks = r.IntN(8) == 0, r.IntN(4) == 0, r.IntN(8) == 0
	p.observers, p.onePage = r.IntN(4) == 0, r.IntN(2) == 0
	p.races, p.reorders = r.IntN(4) == 0, r.IntN(2) == 0
	p.ambush, p.often = r.IntN(5) == 0, 2<<r.IntN(3)
	p.lates = r.IntN(4) == 0
	p.staleAfter = []time.Duration{time.Hour, 10 * time.Second}[r.IntN(2)]
	if !p.saves {
		p.slow, p.failing, p.hanging = false, false, false
	}
	if r.IntN(1000) == 0 { // more than fit into one save, or one slice of a collection
		p.agents, p.steps = maxSlice+r.IntN(maxSlice*5/8), 100+r.IntN(200)
	}
	return p
}

func newWorld(seed uint64) *world {
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		Rand: r, plan: newPlan(r), now: time.Unix(1_700_000_000, 0), shape: shape,
		files: make(map[string]*simFile), observers: make(map[*simFile]*simObserver), takes: make(map[*simFile]int), store: make(map[string]stored),
		written: make(map[uint64]string), valueOf: make(map[uint64]uint64), runs: make(map[uint64]int), stored: make(map[uint64]time.Time), live: make(map[*simFile]map[uint64]uint64),
		begun: make(map[string]int), visible: make(map[string]int), heard: make(map[string]int),
		restarts: make(map[string]uint64), taken: make(map[string]bool), back: make(map[string]bool), released: make(map[string]bool), gone: make(map[string]uint64),
		began: make(map[string]int64), ended: make(map[string]streams),
		kinds: make(map[notice.Kind]int), found: make(map[string]time.Time), usage: make(map[string]usage), known: make(map[string]int), counted: make(map[string]lineage), earlier: make(map[uint64]bool), lost: make(map[uint64]loss),
	}
	more := rand.New(rand.NewPCG(seed, 1)) // so that the others of the plan don't depend on it
	w.plan.streams, w.plan.limits, w.plan.exports = more.IntN(4) == 0, more.IntN(6) == 0, more.IntN(2) == 0 && w.plan.crashes
	for i := range w.plan.agents {
		path := fmt.Sprintf("/rings/agent-%d", i)
		for n := 0; w.plan.onePage && checkpoint.PageOf(path) != 0; n++ {
			path = fmt.Sprintf("/rings/agent-%d-%d", i, n)
		}
		w.files[path] = newSimFile(w, path, 0, 0)
		a := &simAgent{world: w, path: path}
		w.agents = append(w.agents, a)
		a.start(w.randomRing())
	}
	w.boot()
	return w
}

func (w *world) randomRing() (simLayout, uint64) {
	if !w.plan.layouts {
		return simLayouts[3], 4 << w.IntN(2)
	}
	return simLayouts[w.IntN(len(simLayouts))], 1 << (2 + w.IntN(7))
}

// newValue returns the value of a new event: one that no other event has, or the same one
// for all events, or one that repeats in the ring or in each run.
func (w *world) newValue(id uint64, pushed int) (value uint64) {
	switch w.plan.values {
	case 1:
		value = 7
	case 2:
		value = 1 + uint64(pushed)%4
	case 3:
		value = 1 + uint64(pushed)
	default:
		value = id
	}
	w.valueOf[id] = value
	return value
}

// note adds a line to the trace when a single seed is replayed.
func (w *world) note(format string, args ...any) {
	if *one == 0 {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Sub(time.Unix(1_700_000_000, 0)))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Sprintf(format, args...))
}

// unseen reports whether an agent has started since the Collector opened its ring.
func (w *world) unseen(a *simAgent) bool {
	p := w.process
	return p != nil && p.open[a.file] != nil && w.begun[a.path] > p.opened[a.file]
}

// race lets an agent run during a call of a reader. It excludes that a file shrinks while its
// events are counted, because the missing part of an event is zero then; that a full ring is reset at
// position 0; that an agent fills a young ring; and that an agent has only begun to start while its
// ring is resumed at position 0. See ARCHITECTURE.md, "Known gaps". It also excludes that an agent
// starts completely and overwrites slots while they are read, because a start takes longer, and that
// two agents start between two looks, the second one during a look: a reader that took the positions
// before it would take the slots of the first one for those of the second one.
func (w *world) race() {
	if !w.plan.races || w.IntN(w.plan.often) > 0 {
		return
	}
	w.raced++
	w.racing = true
	defer func() { w.racing = false }()
	a := w.agents[w.IntN(len(w.agents))]
	if i := slices.IndexFunc(w.agents, w.resumes); i >= 0 && w.IntN(4) > 0 {
		a = w.agents[i]
	}
	if w.plan.values != 0 && w.process != nil && w.process.resumes(a.path) {
		return // its events may equal those of the checkpoint
	}
	if i := slices.IndexFunc(w.agents, (*simAgent).reordered); i >= 0 && w.IntN(4) > 0 {
		a = w.agents[i] // its stores are out of order for nanoseconds only
	}
	if w.plan.restarts && len(a.steps) == 0 && a.file.broken == 0 && w.IntN(20) == 0 && !w.unseen(a) {
		w.restart(a)
	}
	switch {
	case a.starting && w.mayCommitFromZero(a): // it starts again within the nanoseconds of the first commit of its last run
	case a.fresh && !a.starting, a.size() < a.file.size:
	case w.plan.ambush && w.resumes(a) && w.IntN(2) == 0:
		w.rush(a)
	case w.plan.ambush && w.IntN(4) == 0, w.resumes(a) && w.IntN(2) == 0:
		w.burst(a)
	case w.plan.reorders && *races && !w.opening:
		a.reorder()
	default:
		starting := a.starting
		for a.step(); starting && a.starting && w.IntN(4) > 0; {
			a.step() // the reader is preempted
		}
	}
	if w.process != nil && a.alive && a.file.resets && w.process.resumes(a.path) {
		a.finishReset()
	}
}

// resumes reports whether the ring of an agent is resumed, or will be, at a stored position of 0, and
// would show that the agent has restarted. With equal events, it might not; see ARCHITECTURE.md,
// "Known gaps".
func (w *world) resumes(a *simAgent) bool {
	return w.plan.values == 0 && w.process != nil && w.process.resumes(a.path)
}

// at0 reports whether the Collector has committed nothing of a file since position 0. Another
// consumer may have moved the position since.
func (w *world) at0(f *simFile) bool {
	p := w.process
	return p != nil && p.open[f] != nil && p.open[f].Committed() == 0
}

// mayCommitFromZero reports whether events of an agent were read, but none of its ring is committed.
func (w *world) mayCommitFromZero(a *simAgent) bool {
	return w.at0(a.file) && w.process.open[a.file].Position() > 0
}

// raceSwap is race before a compare-and-swap. An agent doesn't restart and write events at once
// at other times, because a reader reads its slots in place.
func (w *world) raceSwap() {
	if w.plan.races && w.plan.ambush && w.IntN(4) == 0 {
		a := w.agents[w.IntN(len(w.agents))]
		if i := slices.IndexFunc(w.agents, w.mayCommitFromZero); i >= 0 && w.IntN(4) > 0 {
			a = w.agents[i]
		}
		w.raced++
		w.racing = true
		w.rush(a)
		w.racing = false
	}
	w.race()
}

// rush lets an agent make many steps at once. It may restart first, and write as many events as
// were read in the run before, or a few more or less. The file doesn't shrink unless the
// Collector is down.
func (w *world) rush(a *simAgent) {
	if w.halfway() || a.starting || a.paused > 0 || a.file.broken > 0 || a.file != w.files[a.path] {
		return
	}
	if w.plan.restarts && (!w.racing || !w.mayCommitFromZero(a) && !w.unseen(a)) && w.IntN(2) == 0 && a.file.slots == a.slots && a.file.lay.layout == a.lay.layout {
		n := min(a.pushed, int(a.slots)-1)
		if p := w.process; p != nil && p.open[a.file] != nil && w.IntN(2) == 0 {
			n = int(p.open[a.file].Position())
			if p.resumes(a.path) {
				n = min(int(p.owner.agents[a.path].resume.To), int(a.slots)-1)
			}
		}
		full := (a.file.load(offWritePos)+1)&(a.slots-1) == a.file.load(offReadPos)
		lay, slots := a.lay, a.slots
		if w.plan.layouts && w.IntN(2) == 0 {
			if slots = 1 << (2 + w.IntN(7)); w.process != nil {
				slots = max(slots, a.slots)
			}
			n = min(n, int(slots)-1)
		}
		if w.process == nil && w.plan.containers && w.IntN(2) == 0 {
			w.remove(a)
		}
		w.note("%s: agent restarts at once", a.path)
		a.start(lay, slots)
		a.finish()
		if w.IntN(3) == 0 {
			n += w.IntN(3) - 1
		}
		if w.IntN(4) == 0 && !full {
			return // before its first event; see ARCHITECTURE.md, "Known gaps"
		}
		a.pushAll(n)
		if w.IntN(2) == 0 {
			return
		}
	}
	w.burst(a)
}

// burst lets an agent push some events at once.
func (w *world) burst(a *simAgent) {
	if !a.alive || a.starting || a.paused > 0 || a.file.broken > 0 {
		return
	}
	if len(a.steps) == 0 {
		n := 1 + w.IntN(int(min(a.slots, 16)))
		for range n {
			a.push()
		}
	}
	a.finish()
}

// Agents call the following methods.

func (w *world) wrote(a *simAgent, id uint64) {
	w.written[id], w.runs[id] = a.path, a.file.run
	if live := w.live[a.file]; live != nil {
		live[a.write] = id
	} else { // nobody finds the file from now on
		w.loseEvent(a.path, id, "gone", false)
	}
	a.file.pushes++
	w.unnoticed(a, id)
	w.note("%s: event %d in slot %d", a.path, id, a.write)
}

// unnoticed records an event as lost if it equals the event that the reader has read from
// the same slot in the previous run, while the positions don't show the restart. Nothing shows it
// once the run has as many events as were read.
func (w *world) unnoticed(a *simAgent, id uint64) {
	p := w.process
	if w.plan.values == 0 || p == nil {
		return
	}
	r := p.open[a.file]
	if r == nil || r.Layout() != a.lay.layout || r.Capacity() != int(a.slots) {
		return
	}
	if r.Committed() == 0 && a.write < r.Position() {
		w.loseEvent(a.path, id, "equal", false)
		if a.write+1 == r.Position() {
			w.unwatch(func(l loss) bool { return l.path == a.path })
		}
	}
}

// resuming is called before an owner decides how to resume a ring. Two cases are excluded
// if the stored position is 0: the events of a new run that equal those of the checkpoint
// aren't counted if the run has other events, or if its agent had changed the file's time before
// those were counted; and an agent that is between its first two stores has changed the file's
// change time, although the events before still count.
//
// Another consumer can also stop at the stored position a lap later, before equal events.
func (w *world) resuming(f *simFile, c *checkpoint.Mark) {
	if w.plan.values != 0 && w.taken[f.path] && f.slots == c.Capacity && f.load(offReadPos) == c.From {
		for slot, id := range w.live[f] {
			if (slot-c.From)&(f.slots-1) < (c.To-c.From)&(f.slots-1) && !w.counted[f.path][id] {
				w.loseEvent(f.path, id, "equal", false)
			}
		}
	}
	// After commits without checkpoints, or by another consumer, the position may be one of a later lap.
	if at := f.load(offReadPos); at != 0 && (w.uncertain() || w.taken[f.path]) && f.slots == c.Capacity {
		held := (c.To - at) & (f.slots - 1)
		for slot, id := range w.live[f] {
			if held <= (c.To-c.From)&(f.slots-1) && (slot-at)&(f.slots-1) < held && !w.counted[f.path][id] {
				why := "crash"
				if w.taken[f.path] { // a commit without a checkpoint may be another agent's
					why = "foreign"
				}
				w.loseEvent(f.path, id, why, false)
			}
		}
	}
	if c.From != 0 || c.To == 0 || f.slots == 0 {
		return
	}
	if i := slices.IndexFunc(w.agents, func(a *simAgent) bool { return a.alive && a.file == f }); i >= 0 {
		w.agents[i].fence()
		w.agents[i].finishReset()
	}
	if w.plan.values == 0 || f.load(offReadPos) != 0 || f.slots != c.Capacity || uint64(f.number) != c.Ino {
		return
	}
	for slot, id := range w.live[f] {
		if slot < c.To && w.runs[id] == f.run && !w.counted[f.path][id] {
			w.loseEvent(f.path, id, "equal", false)
		}
	}
}

// truncated records the events that are lost by a change of the file's size.
func (w *world) truncated(a *simAgent) {
	w.note("%s: ftruncate for %v with %d slots", a.path, a.lay.layout, a.slots)
	w.begun[a.path]++
	a.file.begun, a.file.process = w.begun[a.path], a.process
	a.seenBy = nil
	if w.watched(a.path) {
		a.seenBy = w.process
	}
	if a.file.size != 0 && a.file.size != a.size() {
		w.lose(a, "restart")
		a.resized = true
	}
}

// reset records the events that are lost by the first store of a restart.
func (w *world) reset(a *simAgent) {
	const tail = 16 // see ringbuf/observe.go
	if f, o := a.file, w.observers[a.file]; o != nil && f.slots != 0 {
		write := f.load(offWritePos)
		o.sure = w.begun[a.path] == o.begun+1 && write != 0 && write+tail < f.slots && o.reader.Position() == write
	}
	w.lose(a, "restart")
	if p := w.process; p != nil {
		p.passed[a.file] = a.file.pushes
		delete(p.unreported, a.file)
		if r := p.open[a.file]; r != nil && r.Committed() == 0 { // the position is again the one that the reader knows
			w.unwatch(func(l loss) bool { return l.path == a.path && l.why == "foreign" })
		}
	}
	a.resized = false
	if f := a.file; a.lay.layout != f.lay.layout || a.slots != f.slots {
		w.shows(a)
	}
}

// rewound records that positions show a restart, unless the reader has just committed
// position 0.
func (w *world) rewound(a *simAgent) {
	if a.file.load(offReadPos) != 0 {
		w.shows(a)
	}
}

// shows records that the header shows a restart to the process. At position 0, it needn't.
func (w *world) shows(a *simAgent) {
	if p := w.process; p != nil {
		if r := p.open[a.file]; r != nil && r == p.reader(a.path) && r.Committed() != 0 {
			w.visible[a.path] = w.begun[a.path]
		}
	}
}

// lose records that the events in an agent's ring are lost by a restart. A reader that opens
// the ring during the restart can't detect the loss, and a reader at position 0 can't detect
// the restart.
func (w *world) lose(a *simAgent, why string) {
	for slot, id := range w.live[a.file] {
		w.checkCommitted(a, slot, id)
		w.loseEvent(a.path, id, why, a.seenBy != nil && a.seenBy == w.process && w.watched(a.path))
	}
	clear(w.live[a.file])
}

// checkCommitted fails if an event is no longer in the ring, but wasn't counted.
func (w *world) checkCommitted(a *simAgent, slot, id uint64) {
	_, isLost := w.lost[id]
	switch {
	case isLost, w.counted[a.path][id], w.earlier[id], w.taken[a.path], w.inRing(a.file, slot):
	case w.plan.values != 0 && w.reported(loss{why: "crash", path: a.path}): // see check
	default:
		w.fail("event %d of %s was committed, but not counted", id, a.path)
	}
}

// watched reports whether an owner reads the ring and isn't at position 0, where it can't
// detect a restart.
func (w *world) watched(path string) bool {
	if w.process == nil || w.process.owner.agents[path] == nil {
		return false
	}
	r := w.process.owner.agents[path].reader
	return r != nil && r == w.process.open[w.files[path]] && (r.Position() != 0 || r.Committed() != 0)
}

func (w *world) loseEvent(path string, id uint64, why string, watched bool) {
	if _, twice := w.lost[id]; !twice {
		w.note("%s: event %d is lost (%s)", path, id, why)
		w.lost[id] = loss{why: why, path: path, at: w.now, watched: watched}
	}
}

// unwatch records that losses that weren't reported yet needn't be.
func (w *world) unwatch(of func(loss) bool) {
	for id, l := range w.lost {
		if l.watched && of(l) && !w.reported(l) {
			l.watched = false
			w.lost[id] = l
		}
	}
}

// foreign lets another consumer take events from a ring.
func (w *world) foreign(a *simAgent) {
	f := a.file
	if f.slots == 0 || f.half || f.load32(offVersion) != f.lay.version || f.load(offCapacity) != f.slots {
		return
	}
	if w.IntN(4) == 0 && a.alive && !a.starting && a.paused == 0 && len(a.steps) == 0 {
		a.pushAll(int(a.slots))
	}
	read, write := f.load(offReadPos), f.load(offWritePos)
	if read >= f.slots || write >= f.slots || read == write {
		return
	}
	if w.process != nil && w.process.unreported[f] || w.backward(a, read, write) {
		return // or it could move the position back to the one that the reader knows
	}
	fill := (write - read) & (f.slots - 1)
	n := 1 + w.Uint64N(fill)
	if w.IntN(4) == 0 {
		n = fill
	}
	if f.taken += n; f.taken >= f.slots || (read+n)&(f.slots-1) == 0 {
		return // undetectable: positions don't show a whole lap, and a restart also stores 0
	}
	for i := range n {
		if id, ok := w.live[f][(read+i)&(f.slots-1)]; ok {
			w.loseEvent(a.path, id, "foreign", w.watched(a.path) && w.process.open[f].Committed() != (read+n)&(f.slots-1))
		}
	}
	w.taken[a.path] = true
	w.visible[a.path] = min(w.visible[a.path], w.heard[a.path]) // the position of a restart is overwritten
	w.takes[f]++
	w.note("%s: another consumer takes %d events", a.path, n)
	if f.locked || !w.rival(f, int(n)) {
		f.store(offReadPos, (read+n)&(f.slots-1))
	}
	p := w.process
	switch {
	case p == nil || p.open[f] == nil || p.open[f] != p.reader(a.path):
	case p.open[f].Capacity() != int(f.slots): // the header shows a restart
	case p.open[f].Committed() != f.load(offReadPos):
		p.unreported[f] = true
	default:
		w.hidden(f, p.open[f])
	}
}

// hidden records that nothing shows a restart, because another consumer has stored the position
// that the reader has committed before it.
func (w *world) hidden(f *simFile, r *ringbuf.Reader) {
	w.unwatch(func(l loss) bool { return l.path == f.path && l.why == "restart" })
	for slot := r.Committed(); slot != r.Position(); slot = (slot + 1) & (f.slots - 1) {
		if id, ok := w.live[f][slot]; ok && !w.counted[f.path][id] {
			w.loseEvent(f.path, id, "foreign", false)
		}
	}
}

// backward lets another consumer store a position from before the last commit, and reports
// whether it does. It does so at most once, and only as far as the Collector has committed. Its
// events would be counted again if the ring were opened again.
func (w *world) backward(a *simAgent, read, write uint64) bool {
	f, p := a.file, w.process
	free := f.slots - 1 - (write-read)&(f.slots-1)
	if w.plan.crashes || w.plan.hanging || w.plan.breaks || w.IntN(3) == 0 || f.half || f.resets || w.taken[a.path] || p == nil || p.open[f] == nil || p.open[f] != p.reader(a.path) || p.open[f].Committed() != read {
		return false
	}
	back := min(free, f.pushes-(write-read)&(f.slots-1)-p.passed[f])
	if back == 0 {
		return false
	}
	to := (read - 1 - w.Uint64N(back)) & (f.slots - 1)
	if to == 0 {
		return false
	}
	w.note("%s: another consumer moves the position back to %d", a.path, to)
	w.taken[a.path], w.back[a.path] = true, true
	w.takes[f]++
	f.store(offReadPos, to)
	p.unreported[f] = true
	return true
}

// step performs a random event.
func (w *world) step() {
	w.wait(time.Duration(w.IntN(2_000_000)))
	p := w.plan
	a := w.agents[w.IntN(len(w.agents))]
	switch n := w.IntN(1000); {
	case n < 30 && len(a.steps) == 0 && a.alive:
		n := 1 + w.IntN(int(2*a.slots))
		if w.IntN(4) == 0 {
			n = int(a.slots - a.next) // up to the end of the ring
		}
		for range n {
			a.push()
		}
	case n < 40 && p.restarts && (a.alive || len(a.steps) == 0):
		w.restart(a)
	case n < 45 && p.restarts && a.alive:
		w.note("%s: agent exits", a.path)
		a.end()
	case n < 55 && p.pauses && len(a.steps) > 0:
		a.paused = w.IntN(100)
	case n < 60 && p.foreign:
		w.foreign(a)
	case n < 63 && p.crashes && w.process != nil:
		w.crash()
	case n < 75 && w.process == nil:
		w.boot()
	case n < 85 && w.process != nil:
		w.process.collect(false)
	case n < 87 && p.containers:
		w.remove(a)
	case n < 88 && p.containers:
		w.unlink(a)
	case n < 92 && p.jumps:
		w.quiet()
	case n < 95 && p.breaks && w.process != nil:
		w.breakHeader(a)
	case n < 150 && p.observers:
		w.observe(a.file)
	case n < 156 && p.ambush:
		w.rush(a)
	case n < 158 && w.process != nil && p.staleAfter < time.Hour:
		w.process.crowd(a)
	case n < 161 && p.crashes && w.process != nil && w.process.stopBy.IsZero():
		w.note("the Collector stops")
		w.process.stop()
	case n < 164 && p.exports && w.process != nil && w.process.stopBy.IsZero():
		w.note("the Collector collects for the last time")
		w.process.stopLater()
	case n < 170 && p.limits && w.process != nil:
		w.process.exhaust(a)
	}
	for range w.IntN(max(8, len(w.agents)/2)) {
		w.agents[w.IntN(len(w.agents))].step()
	}
	if w.process != nil {
		w.process.step()
	}
}

// stopped is the longest time that an agent stops between its first two stores in the header. If it
// stops for longer, a process can't distinguish it from one that has wrapped.
const stopped = 10 * time.Millisecond

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	for _, a := range w.agents {
		if a.file == nil || !a.file.half {
			a.halfway = 0
		} else if a.halfway += d; a.halfway > stopped {
			a.finishReset()
		}
	}
	w.now = w.now.Add(d)
}

// halfway reports whether an agent has called ftruncate, but hasn't stored both positions.
func (w *world) halfway() bool {
	return slices.ContainsFunc(w.agents, func(a *simAgent) bool { return a.file.half || a.file.resets })
}

// quiet lets up to 30 seconds pass in which agents do little, so that time limits are
// reached. An agent may exit, and the storage may hang for the whole time.
func (w *world) quiet() {
	step := time.Duration(1+w.IntN(1000)) * time.Millisecond
	collects := w.IntN(2) == 0
	if w.plan.hanging && w.process != nil && w.IntN(2) == 0 {
		w.process.saver.stall = 30 * time.Second
	}
	a := w.agents[w.IntN(len(w.agents))]
	switch exits := w.plan.restarts && a.alive && w.IntN(2) == 0; {
	case exits && w.IntN(2) == 0:
		w.note("%s: agent exits", a.path)
		a.end()
	case exits:
		defer w.lastWords(a)
	}
	for range 1 + w.IntN(30) {
		if w.halfway() {
			return
		}
		w.wait(step)
		if w.IntN(4) == 0 {
			w.agents[w.IntN(len(w.agents))].step()
		}
		if w.process != nil {
			if collects && w.IntN(4) == 0 {
				w.process.collect(false)
			}
			w.process.step()
		}
	}
}

// lastWords lets an agent write up to the end of its ring and exit. For a second, the ring
// then looks like that of an agent that restarts.
func (w *world) lastWords(a *simAgent) {
	if !a.alive || a.starting || len(a.steps) > 0 || w.halfway() {
		return
	}
	before := a.file.pushes
	a.pushAll(int(a.slots - a.next))
	w.note("%s: agent exits at the end of the ring", a.path)
	if a.file.pushes > before {
		a.file.changed = w.now
	}
	a.end()
	w.pass(30)
	if !w.plan.restarts || a.slots > 8 || w.IntN(2) == 0 || a.file != w.files[a.path] || w.halfway() {
		return
	}
	// The end is read after a second. The next run also writes up to it, and a second later, more.
	w.wait(time.Second)
	w.pass(3)
	a.start(a.lay, a.slots)
	for i := range a.slots + 1 {
		switch {
		case w.halfway():
			return
		case i == a.slots:
			w.wait(time.Second)
			w.pass(2)
		}
		a.pushAll(1)
		w.pass(1)
	}
}

// pass lets the Collector run for some steps of 30 ms.
func (w *world) pass(steps int) {
	for range steps {
		if w.process != nil {
			w.wait(30 * time.Millisecond)
			w.process.step()
		}
	}
}

// breakHeader makes the write position of an idle agent invalid while the process runs.
func (w *world) breakHeader(a *simAgent) {
	f := a.file
	if w.halfway() || len(a.steps) > 0 || f.slots == 0 || f.resets || f.load32(offVersion) != f.lay.version || f.broken > 0 {
		return
	}
	if w.IntN(2) == 0 && a.alive { // the process reads events, possibly up to the end of the ring
		n := 1 + w.IntN(int(a.slots))
		if w.IntN(2) == 0 {
			n = int(a.slots - a.next)
		}
		a.pushAll(n)
		w.wait(time.Duration(w.IntN(60)) * time.Millisecond)
		w.process.step()
	}
	write := f.load(offWritePos)
	if write >= f.slots || len(a.steps) > 0 || w.process == nil { // the agent may have begun to restart
		return
	}
	if w.plan.hanging && w.IntN(2) == 0 {
		w.process.saver.stall = 30 * time.Second
	}
	w.note("%s: the header is invalid", a.path)
	f.broken++
	f.store(offWritePos, f.slots+write)
	wait := func(most time.Duration) {
		for range 1 + w.IntN(20) {
			if w.wait(time.Duration(w.Int64N(int64(most)))); w.process != nil {
				w.process.step()
			}
			for _, a := range w.agents { // another agent may have begun to start
				if a.alive {
					a.finishReset()
				}
			}
		}
	}
	wait(200 * time.Millisecond)
	w.note("%s: the header is valid again", a.path)
	f.store(offWritePos, write)
	if f.broken = 0; w.plan.restarts && w.IntN(4) == 0 && a.file == w.files[a.path] {
		a.start(a.lay, a.slots)
		a.finish()
	}
	if w.plan.crashes && w.IntN(2) == 0 {
		if wait(brokenWait / 10); w.process == nil {
			return
		}
		w.crash() // possibly before the position at which the ring was opened again is stored
	}
}

// restart ends an agent at any point, and starts another with its name.
//
// It excludes one case: an agent exits between its first two system calls and leaves a file
// of another size, and the next agent restores the size. Then the old header is valid again,
// and zeros look like events.
func (w *world) restart(a *simAgent) {
	w.note("%s: agent restarts with %d stores left", a.path, len(a.steps))
	if a.resized {
		a.start(a.lay, a.slots)
		return
	}
	a.start(w.randomRing())
}

// unlink removes or renames the ring of a running agent, which continues to write to it. Its
// events are lost if the Collector doesn't have the ring open, or closes it.
func (w *world) unlink(a *simAgent) {
	f, p := a.file, w.process
	if !a.alive || a.starting || f.unlinked || f != w.files[a.path] || f.broken > 0 {
		return
	}
	w.note("%s: the ring is renamed", f.location())
	f.unlinked = true
	if p == nil || p.open[f] == nil {
		w.loseGone(f, "gone", false)
		w.visible[a.path] = min(w.visible[a.path], w.heard[a.path]) // nobody sees it from now on
		w.unwatch(func(l loss) bool { return l.path == a.path })
	}
}

// fileOf returns the ring that an agent finds when it starts.
func (w *world) fileOf(path string) *simFile {
	f := w.files[path]
	if !f.unlinked {
		return f
	}
	w.files[path] = newSimFile(w, path, f.number+1, f.place)
	if p := w.process; p != nil {
		p.tryAt[path] = w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond)
	}
	return w.files[path]
}

// remove removes an agent's container, or only its ring. The next agent creates another one.
// Events that are only in the old ring are lost, unless the Collector has it open.
func (w *world) remove(a *simAgent) {
	f := w.files[a.path]
	place := f.place + w.IntN(2)
	w.note("%s: the container (%v) or the ring (%v) is removed", f.location(), place != f.place, place == f.place)
	a.end()
	a.starting, a.resized, a.paused = false, false, 0
	w.files[f.path] = newSimFile(w, f.path, f.number+1, place)
	p := w.process
	switch {
	case p == nil || p.open[f] == nil:
		w.loseGone(f, "gone", false)
	case place != f.place:
		p.gone[f] = w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond)
	}
	if p != nil {
		p.tryAt[f.path] = w.now
		if w.IntN(2) == 0 {
			p.tryAt[f.path] = w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond)
		}
	}
	a.start(w.randomRing())
}

// loseGone records the events that are lost because the ring of a removed container can no
// longer be read.
func (w *world) loseGone(f *simFile, why string, watched bool) {
	for _, id := range w.live[f] {
		kept := w.counted[f.path][id]
		if w.plan.saves {
			kept = w.store[f.path].lineage[id]
		}
		if !kept {
			w.loseEvent(f.path, id, why, watched)
		}
	}
	delete(w.live, f)
}

// crash ends the Collector. The store may have applied the current save.
func (w *world) crash() {
	p := w.process
	w.note("crash")
	if p.saver.current != nil && w.IntN(2) == 0 {
		p.saver.apply()
	}
	for f := range p.open {
		f.locked = false
		if f != w.files[f.path] || f.unlinked {
			w.loseGone(f, "gone", false)
		}
	}
	w.unwatch(func(loss) bool { return true }) // the Collector crashed before it could report them
	for path, l := range w.counted {
		for id := range l {
			if !w.plan.saves || !w.store[path].lineage[id] {
				w.forgetCounted(path, id)
			}
		}
	}
	clear(w.visible)
	w.process, w.doomed = nil, false
	if w.plan.ambush && w.IntN(2) == 0 {
		w.rush(w.agents[w.IntN(len(w.agents))])
	}
}

// forgetCounted records the loss of an event that a crashed process had counted but not
// stored. If the event is still in its ring, it is counted again.
func (w *world) forgetCounted(path string, id uint64) {
	if !w.plan.saves {
		w.earlier[id] = true
		return
	}
	for _, f := range w.files {
		for slot, is := range w.live[f] {
			if is == id && w.inRing(f, slot) {
				return
			}
		}
	}
	w.loseEvent(path, id, "crash", false)
}

// inRing reports whether a slot is between the positions of a file's header.
func (w *world) inRing(f *simFile, slot uint64) bool {
	if f.slots == 0 {
		return false
	}
	read, write := f.load(offReadPos), f.load(offWritePos)
	return (slot-read)&(f.slots-1) < (write-read)&(f.slots-1)
}

// settle ends all faults and runs until nothing changes.
func (w *world) settle() {
	p := w.plan
	w.plan = plan{saves: p.saves, values: p.values, staleAfter: p.staleAfter, agents: p.agents, streams: p.streams, limits: p.limits}
	for _, a := range w.agents {
		if a.starting && !a.alive {
			w.restart(a) // completes a start that was interrupted
		}
		a.paused = 0
		a.finish()
	}
	if w.process == nil {
		w.boot()
	}
	if w.process.saver.hung || !w.process.stopBy.IsZero() || !w.process.stopAt.IsZero() {
		w.crash()
		w.boot()
	}
	w.process.hurry()
	for path := range w.process.tryAt {
		w.process.tryAt[path] = w.now
	}
	w.process.saver.stall = 0
	for w.process.saver.current != nil {
		w.wait(100 * time.Millisecond)
		w.process.step()
	}
	for range 400 {
		w.wait(20 * time.Millisecond)
		w.process.step()
	}
}

// check compares the totals with the recorded events.
func (w *world) check() {
	o := w.process.owner
	inRing, ambiguous := make(map[uint64]bool), make(map[uint64]bool)
	for f, slots := range w.live {
		for slot, id := range slots {
			if w.inRing(f, slot) {
				inRing[id] = true
				ambiguous[id] = f.load(offWritePos) == 0
			}
		}
	}
	for path, a := range o.agents {
		all := sumOf(&a.tally.Totals).plus(w.earlierStreams(path, w.process.pending(path), a.start.UnixNano()))
		w.checkTotals(path, all)
		w.checkRestarts(path, all)
		w.checkUsage(path, a)
		w.checkKnown(path, a)
	}
	var counted, still, gone int
	for id, path := range w.written {
		l, isLost := w.lost[id]
		switch {
		case w.counted[path][id] || w.earlier[id]:
			counted++
		case inRing[id]:
			still++
			// A ring that has just wrapped looks like one that restarts. An event that equals the one
			// that was read in its slot stays until a save of that one succeeds.
			if !ambiguous[id] && l.why != "equal" {
				w.fail("event %d of %s is still in the ring of an idle agent", id, path)
			}
		case !isLost && w.taken[path] && w.reported(loss{why: "foreign", path: path}):
			gone++ // another consumer's positions can cause the loss of more events than it takes
		case !isLost && w.plan.values != 0 && w.reported(loss{why: "crash", path: path}):
			gone++ // equal to an event that a checkpoint counts which couldn't be replaced
		case !isLost:
			w.fail("event %d of %s is neither counted, nor in the ring, nor lost for a known reason", id, path)
		default:
			gone++
			w.checkReported(id, l)
		}
	}
	if counted+still+gone != len(w.written) && len(w.errs) == 0 {
		w.fail("%d written, but %d counted + %d in the ring + %d lost", len(w.written), counted, still, gone)
	}
}

func (w *world) checkTotals(path string, got sum) {
	want := sum{restarts: got.restarts}
	for id := range w.counted[path] {
		want.value += w.valueOf[id]
		want.events++
	}
	if got != want {
		w.fail("%s: totals have %d events with sum %d, want %d with sum %d", path, got.events, got.value, want.events, want.value)
	}
}

// checkReported fails if a detectable loss wasn't reported.
func (w *world) checkReported(id uint64, l loss) {
	equal := w.plan.values != 0 && w.reported(loss{why: "crash", path: l.path}) // see check
	if (l.watched || l.why == "crash") && !w.reported(l) && !equal {
		w.fail("event %d of %s was lost (%s) and nothing was reported", id, l.path, l.why)
	}
}

// explains lists the notices that report a loss.
var explains = map[string][]notice.Kind{
	"restart": {notice.RingRestart, notice.RingReplaced, notice.RingBroken, notice.RingForeign},
	// RingBroken: the header was invalid by the time when the ring was read.
	"foreign": {notice.RingForeign, notice.RingRestart, notice.RingBroken},
	"gone":    {notice.RingReplaced, notice.RingRestart, notice.RingForeign, notice.RingBroken},
	// RingReplaced: the old ring is closed without a checkpoint. StreamLost: the lost events aren't known to the simulation.
	"crash": {notice.RingReplaced, notice.StreamLost, notice.StoreFailed, notice.StoreHangs, notice.StoreSlow, notice.CheckpointUnusable, notice.RingForeign},
}

func (w *world) reported(l loss) bool {
	for _, n := range w.notices {
		about := n.Path == l.path || n.Path == "" || strings.HasPrefix(n.Path, l.path+"#")
		// Losses by a crash are reported before the crash, and other losses afterwards.
		// Another consumer's positions can cause a loss later.
		early := l.why == "crash" || n.Kind == notice.RingForeign
		if about && slices.Contains(explains[l.why], n.Kind) && (early || !n.at.Before(l.at)) {
			return true
		}
	}
	return false
}

// simulate runs one seed and returns the failures, or "".
func simulate(seed uint64) (w *world, wrong string) {
	w = newWorld(seed)
	if *races {
		atomic.Before, atomic.BeforeSwap = w.race, w.raceSwap
		defer func() { atomic.Before, atomic.BeforeSwap = func() {}, func() {} }()
	}
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
			wrong = strings.Join(w.errs, "\n")
		}
	}()
	for range w.plan.steps {
		w.step()
		if len(w.errs) > 0 {
			return w, strings.Join(w.errs, "\n")
		}
	}
	w.settle()
	w.check()
	return w, strings.Join(w.errs, "\n")
}
