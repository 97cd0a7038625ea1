// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// process is one run of the Collector: an owner, a source of rings, a saver and
// a receiver that collects.
type process struct {
	world     *world
	owner     *owner
	inbox     []Message
	late      []lateMessage
	mends     []func()       // make headers valid after the current step
	probes    []*atomic.Bool // of the messages in the current step
	next      time.Time      // when the owner wants to run
	stopAt    time.Time      // when it stops, after its last collection; zero before that
	stopBy    time.Time      // the deadline of its stop; zero before that
	open      map[*simFile]*ringbuf.Reader
	tryAt     map[string]time.Time   // when to try to open the ring of a path
	gone      map[*simFile]time.Time // when to send Gone
	shut      map[*simFile]time.Time // ctimes of the files whose rings were closed
	exits     map[*simFile]time.Time // ctimes of the files whose agents were seen to have exited
	sent      map[string]sent        // what was delivered of each agent
	told      map[*simFile]int       // the process of each open file, as discovery has last reported it
	seekAt    map[*simFile]time.Time // when a search may find it
	bare      map[string]bool        // paths of checkpoints without attributes, which are never exported
	exhausted map[string]time.Time   // when the container of a path had last caused too much work
	held      map[string]holding
	zeros     map[string]time.Time // since when the stored position 0 of a path is old
	left      map[string]time.Time // since when the checkpoint of an agent that was retired is stored, and no save is in progress
	opened    map[*simFile]int     // number of the agent that had started when the ring was opened
	known     map[*simFile]int     // number of the agent that had started before the current step
	passed    map[*simFile]uint64  // number of events that were pushed before the reader opened the ring at its position, or in earlier runs
	newest    map[string][]uint64  // events of each path that were counted in the current step

	replaced   map[string]bool      // paths whose next ring was reported to replace another one
	retiring   *ringbuf.Reader      // the ring that was closed last because its agent was retired
	reading    map[string]*simFile  // of the newest ring of each path that the owner reports as opened
	reopens    map[string]time.Time // when the ring of a path was closed to be opened again
	restarted  map[string]time.Time // when the ring of a path was last opened again at once
	notices    []notice.Notice      // of the current step
	calls      []func()             // of the owner in the current step, which take effect after it
	appeared   map[string]bool      // paths whose agents the owner knows or knew
	loadFailed bool                 // the checkpoints couldn't be loaded
	mustReport map[string]bool      // paths whose checkpoints show that an agent has restarted
	unreported map[*simFile]bool    // open files from which another consumer has taken events that aren't reported yet

	crowded  int                  // number of rings for which there is no room
	asked    time.Time            // when the newest save was requested
	saving   *batch               // nil once it is answered
	hangs    bool                 // whether it was reported that the save hangs
	drained  map[string]time.Time // time of each path's last drain
	waiting  map[*collect]bool    // collections that aren't answered
	badSaves int                  // saves that failed
	alive    map[*simFile]bool    // open files that another process has open, as far as the owner knows
	refuses  map[*simFile]bool    // those for which the ring of another container must be refused in this step
	quiet    map[*simFile]int     // events that were counted when the owner knew that the agent had exited and that its ring was empty
	atStop   map[*simFile]pushed  // events that a stop must count
	saver    *simSaver
	above0   map[*ringbuf.Reader]bool // readers that have committed a position
}

func (w *world) boot() {
	w.note("the Collector starts")
	p := &process{
		above0: make(map[*ringbuf.Reader]bool), alive: make(map[*simFile]bool), refuses: make(map[*simFile]bool), quiet: make(map[*simFile]int),
		world: w, open: make(map[*simFile]*ringbuf.Reader), tryAt: make(map[string]time.Time),
		gone: make(map[*simFile]time.Time), shut: make(map[*simFile]time.Time),
		exits: make(map[*simFile]time.Time), sent: make(map[string]sent),
		told: make(map[*simFile]int), seekAt: make(map[*simFile]time.Time), bare: make(map[string]bool), exhausted: make(map[string]time.Time),
		appeared: make(map[string]bool), held: make(map[string]holding), zeros: make(map[string]time.Time), left: make(map[string]time.Time), opened: make(map[*simFile]int),
		replaced: make(map[string]bool), reading: make(map[string]*simFile), reopens: make(map[string]time.Time), restarted: make(map[string]time.Time), unreported: make(map[*simFile]bool), mustReport: make(map[string]bool),
		known: make(map[*simFile]int), passed: make(map[*simFile]uint64), newest: make(map[string][]uint64),
		waiting: make(map[*collect]bool), drained: make(map[string]time.Time),
	}
	p.saver = &simSaver{process: p, entries: make(map[string]stored)}
	cfg := &Config{
		Shape: w.shape, RunInterval: 100 * time.Millisecond, StaleAfter: w.plan.staleAfter,
		Handler: Handler{Events: p.tap},
	}
	if w.plan.streams {
		cfg.Stream = w.attributes
	}
	p.owner = newOwner(cfg, p, w.plan.saves)
	for _, a := range w.agents {
		path := a.path
		p.tryAt[path] = w.now
		if w.plan.containers && w.IntN(4) == 0 { // its container is found later
			p.tryAt[path] = w.now.Add(time.Duration(w.IntN(2000)) * time.Millisecond)
			if w.IntN(4) == 0 {
				p.tryAt[path] = w.now.Add(30 * time.Second)
			}
		}
		w.counted[path], w.began[path] = make(lineage), w.now.UnixNano()
	}
	if w.plan.saves { // events that weren't stored are counted again
		clear(w.usage)
	}
	clear(w.gone)
	w.process = p
	if w.plan.saves {
		p.saver.load()
		p.runCalls()
	}
}

// runCalls lets the owner's calls take effect, now that all its notices are known.
func (p *process) runCalls() {
	for _, call := range p.calls {
		call()
	}
	p.calls, p.notices = nil, nil
}

// tap sees each event as it is counted.
func (p *process) tap(a Agent, b ringbuf.Batch) {
	w := p.world
	r := p.owner.agents[a.ID].reader
	f := p.fileOf(r)
	for i := range b.Len() {
		slot := (r.Position() + uint64(r.Capacity()-b.Len()+i)) % uint64(r.Capacity())
		id := f.event(b.Layout(), slot)
		if value := b.Event(i).Value; value != w.valueOf[id] {
			w.fail("%s: event %d has value %d, but %d was read", a.ID, id, w.valueOf[id], value)
		}
		switch path, ok := w.written[id]; {
		case !ok || path != a.ID:
			w.fail("%s: event %d was counted, but never written there", a.ID, id)
		case w.counted[a.ID][id]:
			w.fail("%s: event %d was counted twice", a.ID, id)
		default:
			w.counted[a.ID][id], w.found[a.ID] = true, w.now
			p.newest[a.ID] = append(p.newest[a.ID], id)
			w.usage[a.ID] = w.usage[a.ID].add(w, id)
			w.note("%s: event %d is counted", a.ID, id)
		}
	}
}

// fileOf returns the file of an open ring.
func (p *process) fileOf(r *ringbuf.Reader) *simFile {
	for f, open := range p.open {
		if open == r {
			return f
		}
	}
	return nil
}

// reader returns the ring that the owner reads for a path, or nil.
func (p *process) reader(path string) *ringbuf.Reader {
	if a := p.owner.agents[path]; a != nil {
		return a.reader
	}
	return nil
}

// resumes reports whether the ring of a path is resumed, or will be, with a stored position of 0.
func (p *process) resumes(path string) bool {
	a := p.owner.agents[path]
	return a != nil && a.resume != nil && a.resume.From == 0 && a.resume.To != 0
}

// step runs what is due in the process, in random order.
func (p *process) step() {
	for _, a := range p.world.agents {
		a.fresh = false
	}
	for _, path := range slices.Sorted(maps.Keys(p.tryAt)) {
		if at := p.tryAt[path]; !p.world.now.Before(at) {
			p.tryOpen(path)
		}
	}
	p.findChanged()
	p.attend()
	p.search()
	p.sendGone()
	if !p.stopAt.IsZero() && !p.world.now.Before(p.stopAt) {
		p.stop()
	}
	if p.saver.step(); p.world.doomed {
		p.world.crash()
		return
	}
	if len(p.inbox) == 0 && (len(p.late) == 0 || p.world.now.Before(p.late[0].at)) && p.world.now.Before(p.next) {
		return
	}
	in := append(p.inbox, p.arrived()...)
	if p.crowded > 0 {
		in = append(in, crowded{p.crowded})
		p.crowded = 0
	}
	p.inbox = nil
	clear(p.newest)
	clear(p.known)
	defer clear(p.refuses)
	for f := range p.open {
		p.known[f] = f.started // the agent may restart during the step
	}
	pending := p.pendings()
	next := p.owner.step(p.world.now, in)
	p.loseStreams(pending)
	for _, mend := range p.mends {
		mend()
	}
	p.mends = nil
	for _, a := range p.world.agents {
		a.fence()
	}
	p.next = next
	for _, pending := range p.probes {
		if pending.Load() {
			p.world.fail("the owner has received whether a ring is open elsewhere, but discovery doesn't know this")
		}
	}
	p.probes = nil
	p.checkHolders()
	for f, r := range p.open {
		if r.Committed() == 0 && p.above0[r] {
			p.world.fail("%s: position 0 was stored", f.location())
		}
		p.above0[r] = r.Committed() != 0
	}
	for path, a := range p.owner.agents {
		f := p.world.files[path]
		if p.owner.exhausted(a.Holder) {
			p.exhausted[path] = p.world.now
		}
		if a.reader != nil && a.reader == p.open[f] && a.due.Equal(p.world.now.Add(a.wait)) && !p.owner.exhausted(a.Holder) { // the owner has checked the ring
			f.taken = 0
			if !f.half { // else it can't know yet that another run has begun
				p.drained[path] = p.world.now
			}
			p.world.checkUsage(path, a)
		}
		if a.reader != nil && !a.exit.final() {
			delete(p.quiet, p.fileOf(a.reader))
		} else if _, ok := p.quiet[p.fileOf(a.reader)]; a.reader != nil && !ok {
			p.quiet[p.fileOf(a.reader)] = len(p.world.counted[path])
		}
	}
	p.runCalls()
	if p.owner.stopped {
		p.end()
		return
	}
	if p.owner.ending && p.atStop != nil {
		p.checkDrained(p.atStop)
		p.atStop = nil
	}
	p.checkReported()
	p.checkDelays()
}

// stop lets the process stop.
func (p *process) stop() {
	p.stopAt = time.Time{}
	p.stopBy, p.atStop = p.world.now.Add(stopWait), p.pushed()
	p.inbox = append(p.inbox, stop{p.stopBy})
}

// stopLater lets the process stop after its last collection, which takes a while to export.
func (p *process) stopLater() {
	p.collect(true)
	p.stopAt = p.world.now.Add(time.Duration(p.world.IntN(2000)) * time.Millisecond)
}

// lateMessage is a message about a ring from discovery. The owner may have replaced the ring since.
type lateMessage struct {
	Message
	at     time.Time
	file   *simFile
	reader *ringbuf.Reader
	sets   func() // what the owner knows from then on, if the ring is still open
}

// tell sends a message about an open ring.
func (p *process) tell(f *simFile, m Message, sets func()) {
	w := p.world
	l := lateMessage{Message: m, at: w.now, file: f, reader: p.open[f], sets: sets}
	if w.plan.lates && w.IntN(2) == 0 {
		l.at = w.now.Add(time.Duration(w.IntN(3000)) * time.Millisecond)
	}
	if n := len(p.late); n > 0 && l.at.Before(p.late[n-1].at) {
		l.at = p.late[n-1].at // discovery's messages arrive in order
	}
	p.late = append(p.late, l)
}

// arrived returns the messages from discovery that have arrived.
func (p *process) arrived() (list []Message) {
	for len(p.late) > 0 && !p.world.now.Before(p.late[0].at) {
		l := p.late[0]
		p.late = p.late[1:]
		list = append(list, l.Message)
		if m, ok := l.Message.(Attended); ok {
			p.probes = append(p.probes, m.Pending)
		}
		if p.open[l.file] == l.reader {
			l.sets()
		}
	}
	return list
}

// hurry lets all messages arrive now.
func (p *process) hurry() {
	for i := range p.late {
		p.late[i].at = p.world.now
	}
}

// end ends the process, whose rings are closed. It completes the save in progress.
func (p *process) end() {
	if s := p.saver; s.current != nil && !s.hung && s.err == nil {
		s.apply()
	}
	p.saver.current = nil
	p.world.crash()
}

// crowd reports that there is no room for some rings. Another run of an agent may have written events
// and exited just before.
func (p *process) crowd(a *simAgent) {
	w := p.world
	p.crowded = 1 + w.IntN(2)
	r := p.open[a.file]
	if a.alive || a.starting || !w.plan.restarts || w.plan.leaseless || a.file.broken > 0 || a.file.unlinked || r == nil || r != p.reader(a.path) || w.IntN(2) == 0 {
		return
	}
	a.start(a.lay, a.slots)
	a.pushAll(1)
	a.end()
	f, changed := a.file, a.file.changed
	p.tell(f, p.attended(f, UpNo), func() { p.exits[f], p.alive[f] = changed, false })
	w.now = w.now.Add(1) // the next start changes the file at another time
}

func (p *process) tryOpen(path string) {
	f := p.world.files[path]
	delete(p.tryAt, path)
	if p.open[f] != nil || f.unlinked {
		return
	}
	if f.locked {
		p.tryAt[path] = p.world.now.Add(5 * time.Millisecond)
		return
	}
	m := &mapping{file: f, size: f.size}
	if m.size < 64 {
		p.tryAt[path] = p.world.now.Add(5 * time.Millisecond)
		return
	}
	started := f.started   // the agent may restart in the meantime
	p.world.opening = true // see ARCHITECTURE.md, "Known gaps"
	r, err := ringbuf.NewReader(f.memory[:m.size], m, ringbuf.Consume)
	p.world.opening = false
	if err != nil {
		p.tryAt[path] = p.world.now.Add(time.Duration(1+p.world.IntN(20)) * time.Millisecond)
		return
	}
	p.world.note("%s: opened, %v with %d slots, read to %d", path, r.Layout(), r.Capacity(), r.Committed())
	p.opened[f] = started
	p.passed[f] = f.pushes - (f.load(offWritePos)-r.Committed())&(f.slots-1)
	a := p.owner.agents[path]
	first := a == nil && !slices.ContainsFunc(p.goneFiles(), func(g *simFile) bool { return g.path == path })
	if first {
		p.world.known[path], p.world.restarts[path] = started, 0
	} else if a != nil && a.resume != nil && !a.absent() {
		p.world.resuming(f, a.resume)
		p.expectRestart(f, r, a.resume)
	}
	if g := p.reading[path]; a != nil && g != nil && a.reader == p.open[g] && p.alive[g] && g.place != f.place {
		p.refuses[g] = true
	}
	f.locked, p.alive[f] = true, false // until it is asked
	p.open[f] = r
	delete(p.reopens, path)
	p.inbox = append(p.inbox, simOffer{Offer{Agent: p.offered(f), Reader: r, From: p}, p.world})
	if p.world.plan.breaks && p.world.IntN(4) == 0 {
		p.breakHeader(f)
	}
}

// breakHeader makes the write position of a file invalid until the end of the current step.
func (p *process) breakHeader(f *simFile) {
	w, write := p.world, f.load(offWritePos)
	busy := slices.ContainsFunc(w.agents, func(a *simAgent) bool { return a.file == f && len(a.steps) > 0 })
	if w.halfway() || busy || !f.readable() || f.broken > 0 || write >= f.slots {
		return
	}
	w.note("%s: the header is invalid", f.location())
	f.broken++
	f.store(offWritePos, f.slots+write)
	p.mends = append(p.mends, func() {
		w.note("%s: the header is valid again", f.location())
		f.store(offWritePos, write)
		f.broken = 0
	})
}

// findChanged opens closed rings whose files have changed.
func (p *process) findChanged() {
	for f, changed := range p.shut {
		if p.open[f] == nil && p.world.files[f.path] == f && !f.changed.Equal(changed) {
			delete(p.shut, f)
			p.tryAt[f.path] = p.world.now
		}
	}
}

// attend sends Attended messages.
func (p *process) attend() {
	w := p.world
	if w.IntN(20) > 0 {
		return
	}
	for _, a := range w.agents {
		f := w.files[a.path]
		if r := p.open[f]; r != nil {
			open := a.alive
			if w.observers[a.file] != nil && w.IntN(2) == 0 {
				open = true // until a search decides that no agent has it mapped
			}
			if open && p.alive[f] && len(p.late) == 0 {
				continue // the owner knows it
			}
			changed, up := f.changed, UpNo
			switch {
			case w.plan.leaseless:
				up = UpUnknown
			case open:
				up = UpYes
			}
			p.tell(f, p.attended(f, up), func() {
				if p.alive[f] = up == UpYes; !open {
					p.exits[f] = changed
				}
			})
			if w.plan.closes && !open {
				p.tell(f, Gone{ID: a.path, Reader: r}, func() {})
			}
		}
	}
	for _, f := range p.goneFiles() {
		p.tell(f, p.attended(f, UpNo), func() { p.alive[f] = false })
	}
}

// attended returns whether another process has an open file open.
func (p *process) attended(f *simFile, up Up) Attended {
	m := Attended{ID: f.path, Reader: p.open[f], Up: up, Pending: new(atomic.Bool)}
	m.Pending.Store(true)
	return m
}

// goneFiles returns the open files that were removed, in order.
func (p *process) goneFiles() (list []*simFile) {
	for f := range p.open {
		if f != p.world.files[f.path] {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(f, g *simFile) int { return cmp.Or(strings.Compare(f.path, g.path), f.number-g.number) })
	return list
}

// sendGone sends Gone messages.
func (p *process) sendGone() {
	for _, f := range p.goneFiles() {
		if at, waits := p.gone[f]; waits && !p.world.now.Before(at) {
			delete(p.gone, f)
			p.world.note("%s: the container is gone", f.location())
			p.tell(f, Gone{ID: f.path, Reader: p.open[f]}, func() { p.alive[f] = false })
		}
	}
}

// process implements Source and env.

func (p *process) Close(r *ringbuf.Reader) { p.call(func() { p.close(r) }) }

func (p *process) Reopen(a Agent, r *ringbuf.Reader) { p.call(func() { p.reopenBy(a, r) }) }
func (p *process) Retire(a Agent, r *ringbuf.Reader) { p.call(func() { p.retire(a, r) }) }
func (p *process) reply(c *collect)                  { p.call(func() { c.done(c.Collection) }) }

func (p *process) Answer(a Agent, r *ringbuf.Reader, refused error) {
	if refused != nil {
		p.call(func() { p.refuse(a, r) })
	}
}

func (p *process) report(n notice.Notice) {
	p.notices = append(p.notices, n)
	p.call(func() { p.reported(n) })
}

func (p *process) save(b *batch, ops []checkpoint.Op) {
	agents, pending := maps.Clone(p.owner.agents), make(map[string]streams) // the same step may drop some
	for path := range agents {
		pending[path] = p.pending(path)
	}
	p.call(func() {
		p.asked, p.saving = p.world.now, b
		p.saver.save(b, ops, agents, pending)
	})
}

func (p *process) call(fn func()) { p.calls = append(p.calls, fn) }

func (p *process) close(r *ringbuf.Reader) {
	p.checkClosed(r)
	p.lose(r, "gone", !p.owner.stopped)
	for f, open := range p.open {
		if open == r {
			p.world.note("%s: closed", f.location())
			if p.owner.stopped && !p.world.plan.saves && f.load(offReadPos) == 0 {
				delete(p.world.usage, f.path) // the ring looks like a new one
			}
			f.locked = false
			delete(p.open, f)
			delete(p.quiet, f)
			delete(p.unreported, f)
			p.shut[f] = f.changed
			if exit, ok := p.exits[f]; ok { // an agent that has started since may not change the file again
				p.shut[f] = exit
			}
		}
	}
}

func (p *process) reopenBy(a Agent, r *ringbuf.Reader) {
	if r != nil { // else it was closed before
		if last := p.restarted[a.ID]; p.world.now.Sub(last) < brokenWait {
			p.world.fail("%s: opened again only %v after it was", a.ID, p.world.now.Sub(last))
		}
		p.reopens[a.ID], p.restarted[a.ID] = p.world.now, p.world.now
	}
	p.reopen(a, r)
}

func (p *process) reopen(a Agent, r *ringbuf.Reader) {
	p.lose(r, "restart", true)
	p.close(r)
	if p.open[p.world.files[a.ID]] == nil {
		p.tryAt[a.ID] = p.world.now.Add(time.Duration(p.world.IntN(5)) * time.Millisecond)
	}
}

func (p *process) retire(a Agent, r *ringbuf.Reader) {
	w := p.world
	w.retired(a.ID, p.fileOf(r))
	if f := p.fileOf(r); f != nil && f.load(offReadPos) == 0 {
		w.released[a.ID] = true
		delete(w.usage, a.ID) // the ring looks like a new one, and an exited agent has no memory
	}
	delete(p.saver.entries, a.ID)
	delete(p.restarted, a.ID)
	p.retiring = r
	p.close(r)
	w.unwatch(func(l loss) bool { return l.path == a.ID && l.at.After(p.drained[a.ID]) })
	if f := w.files[a.ID]; p.open[f] != nil { // it is the first ring of the next agent
		w.known[a.ID], w.restarts[a.ID] = p.opened[f], 0
	}
	for _, s := range w.agents { // it may start again before its checkpoint is removed
		if s.path == a.ID && !s.alive && !s.starting && s.file.broken == 0 && w.plan.restarts && w.IntN(2) == 0 && !w.doomed {
			s.start(s.lay, s.slots)
			s.finish()
			s.push()
			p.tryAt[a.ID] = w.now
		}
	}
}

func (p *process) refuse(a Agent, r *ringbuf.Reader) {
	p.lose(r, "gone", false) // it was refused until then
	p.reopen(a, r)
}

// lose records the events of a ring that can't be opened again as lost.
func (p *process) lose(r *ringbuf.Reader, why string, watched bool) {
	if f := p.fileOf(r); f != nil && (f.unlinked || f != p.world.files[f.path]) {
		p.world.loseGone(f, why, watched)
	}
}

// countedBefore returns the events in the totals of a checkpoint. A collection that can't wait may
// have drained the ring again in the same step.
func (p *process) countedBefore(path string, e *checkpoint.Entry, page *checkpoint.Pages) lineage {
	events := maps.Clone(p.world.counted[path])
	totals, err := p.world.shape.Restore(e.Totals)
	if err != nil {
		p.world.fail("saved totals: %v", err)
		return events
	}
	stored := int(totals.Registered().Events + p.world.earlierStreams(path, p.storedStreams(path, page), e.Mark.Start).events)
	newest := p.newest[path]
	for ; len(newest) > 0 && len(events) > stored; newest = newest[:len(newest)-1] {
		delete(events, newest[len(newest)-1])
	}
	if len(events) != stored {
		p.world.fail("%s: a checkpoint has %d events, but %d were counted", path, stored, len(events))
	}
	return events
}

func (p *process) reported(n notice.Notice) {
	p.world.note("notice: %v", n)
	p.checkNotice(n)
	p.world.notices = append(p.world.notices, seen{n, p.world.now})
	p.world.kinds[n.Kind]++
}

func (p *process) collect(last bool) {
	if !p.stopBy.IsZero() || !p.stopAt.IsZero() {
		return // its last collection has begun
	}
	c := &collect{deadline: p.world.now.Add(hungSave), last: last}
	p.waiting[c] = true
	pushed := p.pushed()
	c.done = func(got Collection) {
		if !p.waiting[c] {
			p.world.fail("a collection is answered twice")
		}
		delete(p.waiting, c)
		p.checkDrained(pushed)
		p.world.note("collected %d agents", len(got.Snapshots))
		p.world.collected(got)
		if p.world.IntN(4) == 0 {
			return // the next consumer has rejected it
		}
		p.inbox = append(p.inbox, delivered{got.number})
		p.deliver(got)
	}
	p.inbox = append(p.inbox, c)
}
