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

// world is everything outside the owner: agents, files, a store, another
// consumer, and the truth about every event.
type world struct {
	*rand.Rand
	plan  plan
	now   time.Time
	shape *tally.Shape
	trace []string // the last things that happened

	files  map[string]*simFile
	agents []*simAgent
	store  map[string]stored // what the storage extension has on disk

	process *process // nil while the Collector is down

	// The truth.
	lastID  uint64
	written map[uint64]string              // event to path
	dropped int                            // by agents, because a ring was full
	live    map[*simFile]map[uint64]uint64 // what is in each file: slot to event
	counted map[string]lineage             // the totals of each path, as they should be
	earlier map[uint64]bool                // counted in totals that have ended
	lost    map[uint64]loss
	notices []seen
	errs    []string
}

// lineage is the events that one run of totals has counted.
type lineage map[uint64]bool

// loss is why an event will never be counted.
type loss struct {
	why     string
	path    string
	at      time.Time
	watched bool // a reader had the ring open
}

// seen is a notice that was reported.
type seen struct {
	notice.Notice
	at time.Time
}

// stored is a value in the store, and what its totals have counted.
type stored struct {
	value   []byte
	lineage lineage
}

// plan says which faults a run has.
type plan struct {
	saves                              bool
	restarts, pauses, foreign, crashes bool
	slow, failing, hanging             bool // the store
	layouts                            bool // agents change layout and capacity
	containers                         bool // are removed, with their rings
	closes                             bool // rings of agents that have exited
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
		written: make(map[uint64]string), live: make(map[*simFile]map[uint64]uint64),
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

// note keeps what happens for whoever replays a seed.
func (w *world) note(format string, args ...any) {
	if *one == 0 {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Sub(time.Unix(1_700_000_000, 0)))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Sprintf(format, args...))
}

// What agents report as they go.

func (w *world) wrote(a *simAgent, id uint64) {
	w.written[id] = a.path
	w.live[a.file][a.write] = id
	w.note("%s: event %d in slot %d", a.path, id, a.write)
}

// truncated notes what a change of the file's size destroys.
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

// reset notes what the first store of a restart destroys.
func (w *world) reset(a *simAgent) {
	w.lose(a, "restart")
	a.resized = false
}

// lose notes that an agent's restart destroys what is in its ring. A reader that
// opened the ring in the middle of the restart can't know what there was, and one
// at position 0 sees no restart.
func (w *world) lose(a *simAgent, why string) {
	for _, id := range w.live[a.file] {
		w.loseEvent(a.path, id, why, a.seenBy != nil && a.seenBy == w.process && w.watched(a.path))
	}
	clear(w.live[a.file])
}

// watched reports whether an owner reads the ring and isn't at position 0, where a
// restart doesn't show.
func (w *world) watched(path string) bool {
	if w.process == nil || w.process.owner.agents[path] == nil {
		return false
	}
	r := w.process.owner.agents[path].reader
	return r != nil && r == w.process.open[w.files[path]] && r.Position() != 0
}

func (w *world) loseEvent(path string, id uint64, why string, watched bool) {
	if _, twice := w.lost[id]; !twice {
		w.note("%s: event %d is gone (%s)", path, id, why)
		w.lost[id] = loss{why: why, path: path, at: w.now, watched: watched}
	}
}

// foreign is another consumer: it takes events from a ring.
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
		return // positions don't show a whole lap, and 0 is what a restart stores
	}
	for i := range n {
		if id, ok := w.live[f][(read+i)&(a.slots-1)]; ok {
			w.loseEvent(a.path, id, "foreign", w.watched(a.path))
		}
	}
	f.store(a.lay.readPos, (read+n)&(a.slots-1))
	w.note("%s: another consumer takes %d events", a.path, n)
}

// step lets something happen.
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

// restart ends an agent at whatever it does, and starts another under its name.
//
// One thing is left out: an agent that dies between its first two system calls
// and leaves a file of another size, followed by one that restores the size. The
// old header is valid again then, and zeros look like events.
func (w *world) restart(a *simAgent) {
	w.note("%s: agent restarts, %d stores before it was done", a.path, len(a.steps))
	if a.resized {
		a.start(a.lay, a.slots)
		return
	}
	a.start(w.randomRing())
}

// remove ends an agent's container. Its next one has no ring yet. What only the old
// ring has is lost, unless the Collector has it open.
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

// loseGone notes that nobody can read the ring of a container that is gone any more.
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

// crash ends the Collector. What the store was about to do may have been done.
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
			l.watched = false // the Collector died before it could tell
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

// forgetCounted notes an event that a dead process had counted and not stored.
// If it is still in its ring it is counted again.
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

// settle ends all faults and lets everything come to rest.
func (w *world) settle() {
	p := w.plan
	w.plan = plan{saves: p.saves, agents: p.agents}
	for _, a := range w.agents {
		if a.starting && !a.alive {
			w.restart(a) // an agent that died halfway shows with the next
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

// check compares the totals with the truth.
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
			if !ambiguous[id] { // "just wrapped" looks like "restarting" until the next event
				w.fail("event %d of %s is still in the ring of an agent that has come to rest", id, path)
			}
		case !isLost && w.reported(loss{why: "foreign", path: path}):
			gone++ // what another consumer does to the positions can cost more than it takes
		case !isLost:
			w.fail("event %d of %s is neither counted nor in the ring, and nothing explains that", id, path)
		default:
			gone++
			w.checkReported(id, l)
		}
	}
	if counted+still+gone != len(w.written) && len(w.errs) == 0 {
		w.fail("%d written = %d counted + %d in the ring + %d lost doesn't balance", len(w.written), counted, still, gone)
	}
}

func (w *world) checkTotals(path string, a *agent) {
	var sum, events uint64
	for id := range w.counted[path] {
		sum += id
		events++
	}
	if got := a.tally.Registered(); got.Sum.Lo != sum || got.Events != events {
		w.fail("%s: totals have %d events with sum %d; the events that were counted are %d with sum %d",
			path, got.Events, got.Sum.Lo, events, sum)
	}
}

// checkReported fails unless a loss that somebody could notice was reported.
func (w *world) checkReported(id uint64, l loss) {
	if (l.watched || l.why == "crash") && !w.reported(l) {
		w.fail("event %d of %s was lost (%s) and nothing was reported", id, l.path, l.why)
	}
}

// explains are the notices that report a loss.
var explains = map[string][]notice.Kind{
	"restart": {notice.RingRestart, notice.RingReplaced, notice.RingBroken, notice.RingForeign},
	"foreign": {notice.RingForeign, notice.RingRestart},
	// The ring of an agent that has another one already is closed without a checkpoint.
	"crash": {notice.RingReplaced, notice.StoreFailed, notice.StoreHangs, notice.StoreSlow, notice.CheckpointUnusable, notice.RingForeign},
}

func (w *world) reported(l loss) bool {
	for _, n := range w.notices {
		about := n.Path == l.path || n.Path == "" || strings.HasPrefix(n.Path, l.path+"#")
		// What a crash loses was reported before it, everything else after.
		// What another consumer does to the positions can cost events later.
		early := l.why == "crash" || n.Kind == notice.RingForeign
		if about && slices.Contains(explains[l.why], n.Kind) && (early || !n.at.Before(l.at)) {
			return true
		}
	}
	return false
}

// simulate runs one seed and returns what is wrong, or nothing.
func simulate(seed uint64) (w *world, wrong string) {
	w = newWorld(seed)
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
			wrong = strings.Join(w.errs, "\n")
			if w.plan.steps < 0 {
				panic(r)
			}
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
