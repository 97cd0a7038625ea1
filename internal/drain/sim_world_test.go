// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
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
	store  map[string]stored // content of the storage extension

	process *process // nil while the Collector is down

	// The expected results.
	lastID   uint64
	written  map[uint64]string              // event to path
	unpushed map[uint64]*simFile            // events in last slots, including those that were never pushed
	dropped  int                            // events dropped by agents because a ring was full
	live     map[*simFile]map[uint64]uint64 // content of each file: slot to event
	counted  map[string]lineage             // events in the current totals of each path
	earlier  map[uint64]bool                // events in earlier totals
	lost     map[uint64]loss
	notices  []seen
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

// stored is a value in the store, and the events that its totals have counted.
type stored struct {
	value   []byte
	lineage lineage
}

// plan selects the faults of a run.
type plan struct {
	saves                              bool
	restarts, pauses, foreign, crashes bool
	slow, failing, hanging             bool // faults of the store
	layouts                            bool // agents change layout and capacity
	containers                         bool // containers are removed with their rings
	closes                             bool // rings of exited agents are closed
	agents, steps                      int
}

func newPlan(r *rand.Rand) plan {
	some := func() bool { return r.IntN(2) == 0 }
	p := plan{
		saves: r.IntN(4) > 0, restarts: some(), pauses: some(), foreign: r.IntN(4) == 0, crashes: some(),
		slow: some(), failing: r.IntN(4) == 0, hanging: r.IntN(6) == 0, layouts: some(),
		agents: 1 + r.IntN(3), steps: 200 + r.IntN(1200),
	}
	p.containers, p.closes = r.IntN(3) == 0, r.IntN(3) == 0
	if !p.saves {
		p.slow, p.failing, p.hanging = false, false, false
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
		files: make(map[string]*simFile), store: make(map[string]stored),
		written: make(map[uint64]string), unpushed: make(map[uint64]*simFile), live: make(map[*simFile]map[uint64]uint64),
		counted: make(map[string]lineage), earlier: make(map[uint64]bool), lost: make(map[uint64]loss),
	}
	for i := range w.plan.agents {
		path := fmt.Sprintf("/rings/agent-%d", i)
		f := &simFile{world: w, path: path, memory: make([]byte, maxSimFile)}
		w.files[path], w.live[f] = f, make(map[uint64]uint64)
		a := &simAgent{world: w, path: path}
		w.agents = append(w.agents, a)
		a.start(w.randomRing())
	}
	w.boot()
	return w
}

func (w *world) randomRing() (simLayout, uint64) {
	if !w.plan.layouts {
		return simLayouts[3], 8
	}
	return simLayouts[w.IntN(len(simLayouts))], 1 << (2 + w.IntN(5))
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

// Agents call the following methods.

func (w *world) wrote(a *simAgent, id uint64) {
	w.written[id] = a.path
	w.live[a.file][a.write] = id
	w.note("%s: event %d in slot %d", a.path, id, a.write)
}

// pushedByRestart records an event as written if a restart that stopped after its first
// store pushed it: the agent had written the last slot and exited, and the next process
// stored writePos = 0. For a second, readers must not count such an event.
func (w *world) pushedByRestart(path string, id uint64) {
	f := w.unpushed[id]
	if f == nil || f.path != path || w.written[id] != "" || f.load(f.lay.writePos) != 0 || w.now.Sub(f.changed) < time.Second {
		return
	}
	w.note("%s: event %d counts as pushed by the restart", path, id)
	w.written[id] = path
	w.live[f][f.slots-1] = id
}

// truncated records the events that are lost by a change of the file's size.
func (w *world) truncated(a *simAgent) {
	w.note("%s: ftruncate for %v with %d slots", a.path, a.lay.layout, a.slots)
	a.seenBy = nil
	if w.watched(a.path) {
		a.seenBy = w.process
	}
	if a.file.size != 0 && a.file.size != a.lay.header+int(a.slots)*a.lay.slot {
		w.lose(a, "restart")
		a.resized = true
	}
}

// reset records the events that are lost by the first store of a restart.
func (w *world) reset(a *simAgent) {
	w.lose(a, "restart")
	a.resized = false
}

// lose records that the events in an agent's ring are lost by a restart. A reader that opens
// the ring during the restart can't detect the loss, and a reader at position 0 can't detect
// the restart.
func (w *world) lose(a *simAgent, why string) {
	for _, id := range w.live[a.file] {
		w.loseEvent(a.path, id, why, a.seenBy != nil && a.seenBy == w.process && w.watched(a.path))
	}
	clear(w.live[a.file])
}

// watched reports whether an owner reads the ring and isn't at position 0, where it can't
// detect a restart.
func (w *world) watched(path string) bool {
	if w.process == nil || w.process.owner.agents[path] == nil {
		return false
	}
	r := w.process.owner.agents[path].reader
	return r != nil && r == w.process.open[w.files[path]] && r.Position() != 0
}

func (w *world) loseEvent(path string, id uint64, why string, watched bool) {
	if _, twice := w.lost[id]; !twice {
		w.note("%s: event %d is lost (%s)", path, id, why)
		w.lost[id] = loss{why: why, path: path, at: w.now, watched: watched}
	}
}

// foreign lets another consumer take events from a ring.
func (w *world) foreign(a *simAgent) {
	f := a.file
	if len(a.steps) > 0 && f.load32(offVersion) != a.lay.version || f.load32(offVersion) != a.lay.version {
		return
	}
	read, write := f.load(a.lay.readPos), f.load(a.lay.writePos)
	if read >= a.slots || write >= a.slots || read == write {
		return
	}
	n := 1 + w.Uint64N((write-read)&(a.slots-1))
	if f.taken += n; f.taken >= a.slots || (read+n)&(a.slots-1) == 0 {
		return // undetectable: positions don't show a whole lap, and a restart also stores 0
	}
	for i := range n {
		if id, ok := w.live[f][(read+i)&(a.slots-1)]; ok {
			w.loseEvent(a.path, id, "foreign", w.watched(a.path))
		}
	}
	f.store(a.lay.readPos, (read+n)&(a.slots-1))
	w.note("%s: another consumer takes %d events", a.path, n)
}

// step performs a random event.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.IntN(2_000_000)))
	p := w.plan
	a := w.agents[w.IntN(len(w.agents))]
	switch n := w.IntN(1000); {
	case n < 30 && len(a.steps) == 0 && a.alive:
		for range 1 + w.IntN(int(2*a.slots)) {
			a.push()
		}
	case n < 40 && p.restarts && (a.alive || len(a.steps) == 0):
		w.restart(a)
	case n < 45 && p.restarts && a.alive:
		w.note("%s: agent exits", a.path)
		a.alive, a.steps = false, nil
	case n < 55 && p.pauses && len(a.steps) > 0:
		a.paused = w.IntN(100)
	case n < 60 && p.foreign:
		w.foreign(a)
	case n < 63 && p.crashes && w.process != nil:
		w.crash()
	case n < 75 && w.process == nil:
		w.boot()
	case n < 85 && w.process != nil:
		w.process.collect()
	case n < 88 && p.containers:
		w.remove(a)
	}
	for range w.IntN(8) {
		w.agents[w.IntN(len(w.agents))].step()
	}
	if w.process != nil {
		w.process.step()
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

// remove removes an agent's container. The next container has no ring yet. Events that are
// only in the old ring are lost, unless the Collector has it open.
func (w *world) remove(a *simAgent) {
	f := w.files[a.path]
	w.note("%s: the container is removed", f.location())
	a.alive, a.steps, a.starting, a.resized, a.paused = false, nil, false, false, 0
	next := &simFile{world: w, path: f.path, memory: make([]byte, maxSimFile), number: f.number + 1}
	w.files[f.path], w.live[next] = next, make(map[uint64]uint64)
	p := w.process
	if p == nil || p.open[f] == nil {
		w.loseGone(f, "gone", false)
	} else {
		p.gone[f] = w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond)
	}
	if p != nil {
		p.tryAt[f.path] = w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond)
	}
	a.start(w.randomRing())
}

// loseGone records the events that are lost because the ring of a removed container can no
// longer be read.
func (w *world) loseGone(f *simFile, why string, watched bool) {
	for _, id := range w.live[f] {
		kept := w.counted[f.path][id]
		if w.plan.saves {
			kept = w.store["agent:"+f.path].lineage[id]
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
	if r := p.saver.current; r != nil && r.ops != nil && w.IntN(2) == 0 {
		p.saver.apply(r)
	}
	for f := range p.open {
		f.locked = false
		if f != w.files[f.path] {
			w.loseGone(f, "gone", false)
		}
	}
	for id, l := range w.lost {
		if l.watched && !w.reported(l) {
			l.watched = false // the Collector crashed before it could report the loss
			w.lost[id] = l
		}
	}
	for path, l := range w.counted {
		for id := range l {
			if !w.plan.saves || !w.store["agent:"+path].lineage[id] {
				w.forgetCounted(path, id)
			}
		}
	}
	w.process = nil
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
	read, write := f.load(f.lay.readPos), f.load(f.lay.writePos)
	return (slot-read)&(f.slots-1) < (write-read)&(f.slots-1)
}

// settle ends all faults and runs until nothing changes.
func (w *world) settle() {
	p := w.plan
	w.plan = plan{saves: p.saves, agents: p.agents}
	for _, a := range w.agents {
		if a.starting && !a.alive {
			w.restart(a) // completes a start that was interrupted
		}
		a.paused = 0
		for len(a.steps) > 0 {
			a.step()
		}
	}
	if w.process == nil {
		w.boot()
	}
	if w.process.saver.hung {
		w.crash()
		w.boot()
	}
	for range 400 {
		w.now = w.now.Add(20 * time.Millisecond)
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
				ambiguous[id] = f.load(f.lay.writePos) == 0
			}
		}
	}
	for path, a := range o.agents {
		w.checkTotals(path, a)
	}
	var counted, still, gone int
	for id, path := range w.written {
		l, isLost := w.lost[id]
		switch {
		case w.counted[path][id] || w.earlier[id]:
			counted++
		case inRing[id]:
			still++
			if !ambiguous[id] { // a ring that has just wrapped looks like one that restarts
				w.fail("event %d of %s is still in the ring of an idle agent", id, path)
			}
		case !isLost && w.reported(loss{why: "foreign", path: path}):
			gone++ // another consumer's positions can cause the loss of more events than it takes
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

func (w *world) checkTotals(path string, a *agent) {
	var sum, events uint64
	for id := range w.counted[path] {
		sum += id
		events++
	}
	if got := a.tally.Registered(); got.Sum.Lo != sum || got.Events != events {
		w.fail("%s: totals have %d events with sum %d, want %d with sum %d", path, got.Events, got.Sum.Lo, events, sum)
	}
}

// checkReported fails if a detectable loss wasn't reported.
func (w *world) checkReported(id uint64, l loss) {
	if (l.watched || l.why == "crash") && !w.reported(l) {
		w.fail("event %d of %s was lost (%s) and nothing was reported", id, l.path, l.why)
	}
}

// explains lists the notices that report a loss.
var explains = map[string][]notice.Kind{
	"restart": {notice.RingRestart, notice.RingReplaced, notice.RingBroken, notice.RingForeign},
	"foreign": {notice.RingForeign, notice.RingRestart},
	"gone":    {notice.RingReplaced, notice.RingRestart, notice.RingForeign},
	// RingReplaced: the old ring is closed without a checkpoint.
	"crash": {notice.RingReplaced, notice.StoreFailed, notice.StoreHangs, notice.StoreSlow, notice.CheckpointUnusable, notice.RingForeign},
}

func (w *world) reported(l loss) bool {
	for _, n := range w.notices {
		about := n.Path == l.path || n.Path == "" || strings.HasPrefix(n.Path, l.path+"#")
		// Losses by a crash are reported before the crash, and other losses afterwards.
		// Another consumer's positions can cause a loss later.
		early := l.why == "crash" || n.Kind == notice.RingForeign
		// A run that starts and ends between two looks at the ring can't be noticed, so a
		// restart may lose events although its notice excludes that.
		lossless := l.why == "gone" && (n.Kind == notice.RingReplaced || n.Kind == notice.RingRestart) && !strings.Contains(n.Text, "may be lost")
		if about && !lossless && slices.Contains(explains[l.why], n.Kind) && (early || !n.at.Before(l.at)) {
			return true
		}
	}
	return false
}

// simulate runs one seed and returns the failures, or "".
func simulate(seed uint64) (w *world, wrong string) {
	w = newWorld(seed)
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
