// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The following checks run while the simulation runs, at the effect that they are about.

// collected checks a collection: it has no more events than were counted, and a crash can't
// undo them.
func (w *world) collected(c Collection) {
	reported := make(map[string]int)
	for _, s := range c.Snapshots {
		if c.number > w.gone[s.ID] && s.Start.UnixNano() >= w.began[s.ID] { // else it may have been collected before it was retired
			reported[s.ID] += int(s.Totals.Registered().Events)
		}
	}
	for path, a := range w.process.owner.agents {
		_, isReported := reported[path]
		if _, delivered := w.process.sent[path]; a.absent() && !isReported && !delivered && !w.process.bare[path] {
			w.fail("%s: stored totals aren't reported", path)
		}
	}
	for path, events := range reported {
		if events > len(w.counted[path]) {
			w.fail("%s: %d events are reported, but %d are counted", path, events, len(w.counted[path]))
		}
		stored := len(w.store[path].lineage)
		if w.plan.saves && events > stored && !w.process.owner.failing && w.kinds[notice.ExportUnsaved] == 0 {
			w.fail("%s: %d events are reported, but %d are stored", path, events, stored)
		}
	}
}

// retired checks that an agent has exited and everything was counted, stored and delivered.
// f is nil if its ring was closed before.
func (w *world) retired(path string, f *simFile) {
	w.note("%s: retired", path)
	counted := len(w.counted[path])
	crowded := slices.ContainsFunc(w.process.notices, func(n notice.Notice) bool {
		return n.Kind == notice.RingRetired && strings.Contains(n.Text, "gives way")
	})
	if since := w.now.Sub(w.found[path]); counted > 0 && since < w.plan.staleAfter && !crowded {
		w.fail("%s: retired %v after its last events", path, since)
	}
	if since, ok := w.process.reopens[path]; ok && w.now.Sub(since) < w.plan.staleAfter && !crowded {
		w.fail("%s: retired %v after its ring was closed to be opened again", path, w.now.Sub(since))
	}
	if sent := w.process.delivered(path); sent != counted {
		w.fail("%s: retired with %d events, but %d were delivered", path, counted, sent)
	}
	if n, ok := w.process.quiet[f]; ok && counted > n {
		w.fail("%s: retired although its agent has written %d events since it seemed to have exited", path, counted-n)
	}
	if f != nil {
		restarted := !w.process.exits[f].Equal(f.changed)
		for slot, id := range w.live[f] {
			if w.inRing(f, slot) && (w.counted[path][id] || !restarted) {
				w.fail("%s: retired with event %d in its ring", path, id)
			}
		}
	}
	w.gone[path] = w.process.owner.collections
	delete(w.visible, path)
	maps.Copy(w.earlier, w.counted[path])
	w.counted[path], w.began[path] = make(lineage), w.now.UnixNano()
}

// openedAt returns the file of the oldest open ring at a location.
func (p *process) openedAt(location string) (oldest *simFile) {
	for f := range p.open {
		if f.location() == location && (oldest == nil || f.number < oldest.number) {
			oldest = f
		}
	}
	return oldest
}

// reports reports whether the current step reports one of the kinds about a file.
func (p *process) reports(f *simFile, kinds ...notice.Kind) bool {
	return slices.ContainsFunc(p.notices, func(n notice.Notice) bool { return n.Path == f.location() && slices.Contains(kinds, n.Kind) })
}

// checkClosed checks that a ring is closed only after all its events were read and stored,
// unless something else is reported.
func (p *process) checkClosed(r *ringbuf.Reader) {
	f, w := p.fileOf(r), p.world
	if f == nil || p.reports(f, notice.RingBroken, notice.RingRestart) {
		return
	}
	if p.refuses[f] && p.reports(f, notice.RingReplaced) {
		w.fail("%s: the ring of a running agent was replaced by one of another container", f.location())
	}
	// The ring of an agent that is retired later keeps its last slot; see ARCHITECTURE.md, "Known gaps".
	released := p.retiring == r || p.reports(f, notice.RingReplaced) || p.owner.stopped && !p.owner.saves
	same := f.begun == p.opened[f] && f.broken == 0
	if released && same && !w.taken[f.path] && r.Uncommitted() == 0 && f.load(offReadPos) != r.Position() {
		w.fail("%s: closed at %d, but its position is %d", f.location(), r.Position(), f.load(offReadPos))
	}
	stops := p.owner.stopped && (!p.owner.saves || p.owner.failing || p.saving != nil || !w.now.Before(p.stopBy))
	if n := r.Uncommitted(); n > 0 && !p.reports(f, notice.RingReplaced) && !stops {
		w.fail("%s: closed with %d events that aren't stored", f.location(), n)
	}
	if p.reading[f.path] != f || w.files[f.path] == f || w.taken[f.path] || !f.readable() || p.owner.stopped {
		return
	}
	if w.begun[f.path] > p.opened[f]+1 { // an agent restarted in the file before another one replaced it
		return
	}
	for slot, id := range w.live[f] {
		if w.inRing(f, slot) && !w.counted[f.path][id] && !w.earlier[id] {
			w.fail("%s: closed before event %d was read", f.location(), id)
		}
	}
}

// expectRestart decides whether a ring that is resumed shows that its agent has restarted.
func (p *process) expectRestart(f *simFile, r *ringbuf.Reader, c *checkpoint.Mark) {
	other := c.Layout != r.Layout() || c.Capacity != uint64(r.Capacity()) || c.Ino != uint64(f.number)
	reset := r.Committed() == 0 && c.From != 0
	p.mustReport[f.path] = c.Layout != 0 && (other || reset) && !p.world.taken[f.path]
}

// checkReported checks that the owner reports other consumers when it looks at the ring, and
// restarts when it resumes it.
func (p *process) checkReported() {
	for path, must := range p.mustReport {
		if a := p.owner.agents[path]; !must || a == nil {
			delete(p.mustReport, path)
		} else if a.reader != nil && a.resume == nil {
			p.world.fail("%s: a restart since the checkpoint isn't reported", path)
		}
	}
	for f := range p.unreported {
		if a := p.owner.agents[f.path]; a.reader == p.open[f] && a.due.Equal(p.world.now.Add(a.wait)) && !p.owner.exhausted(a.Holder) {
			p.world.fail("%s: another consumer has taken events, and nothing is reported", f.location())
		}
	}
}

// pushed are events that were in a ring at some time.
type pushed struct {
	events []uint64
	write  uint64 // position at that time
	at     time.Time
	reader *ringbuf.Reader // a ring that is opened again later needn't be read
}

// pushed returns the events in open rings that a collection must have.
func (p *process) pushed() map[*simFile]pushed {
	w := p.world
	all := make(map[*simFile]pushed)
	if w.plan.values != 0 && w.uncertain() {
		return nil // events can equal those that a checkpoint counts
	}
	for f, r := range p.open {
		if r != p.reader(f.path) || w.taken[f.path] || !f.readable() {
			continue
		}
		list := pushed{write: f.load(offWritePos), at: w.now, reader: r}
		for slot, id := range w.live[f] {
			if w.inRing(f, slot) && !w.counted[f.path][id] && !w.earlier[id] {
				list.events = append(list.events, id)
			}
		}
		all[f] = list
	}
	return all
}

// checkDrained checks that events that were in a ring before a collection are counted, unless
// they were lost in the meantime. A position that has wrapped since may be that of a restart.
func (p *process) checkDrained(all map[*simFile]pushed) {
	w := p.world
	for f, list := range all {
		r := p.open[f]
		if r == nil || r != list.reader || r != p.reader(f.path) || w.taken[f.path] || f.load(offWritePos) < list.write || p.limited(f.path, list.at) {
			continue
		}
		if r.Committed() == 0 && (r.Position() == list.write || r.Position() == f.load(offWritePos)) {
			continue // a run with as many events as the last one is noticed when they are committed
		}
		for _, id := range list.events {
			if _, lost := w.lost[id]; !lost && !w.counted[f.path][id] && !w.earlier[id] {
				w.fail("%s: collected before event %d was read", f.location(), id)
			}
		}
	}
}

// holding is since when a ring has events that were counted but not committed.
type holding struct {
	committed uint64
	since     time.Time
}

// checkDelays checks that nothing waits for longer than it should. The owner runs at least
// once a second, but the simulation may run it another second later.
func (p *process) checkDelays() {
	w, o := p.world, p.owner
	late := func(since time.Time, limit time.Duration) bool { return w.now.Sub(since) > limit+2100*time.Millisecond }
	for path, a := range o.agents {
		mark := w.store[path].mark
		switch {
		case a.reader == nil || a.reader.Committed() == 0 || mark.From != 0 || mark.To == 0 || p.saving != nil || o.failing:
			delete(p.zeros, path)
		case p.zeros[path].IsZero():
			p.zeros[path] = w.now
		case late(p.zeros[path], 0):
			w.fail("%s: position 0 is still stored %v after its commit", path, w.now.Sub(p.zeros[path]))
		}
		h := p.held[path]
		switch {
		case a.reader == nil || a.held() == 0:
			delete(p.held, path)
		case h.since.IsZero() || h.committed != a.reader.Committed() || p.saving != nil || o.failing:
			p.held[path] = holding{a.reader.Committed(), w.now}
		case late(h.since, saveEvery):
			w.fail("%s: events are held since %v", path, w.now.Sub(h.since))
		}
	}
	for path := range w.store {
		switch since := p.left[path]; {
		case o.agents[path] != nil || p.saving != nil || p.loadFailed:
			delete(p.left, path)
		case since.IsZero() || since.Before(p.asked): // the last save may have failed
			p.left[path] = w.now
		case late(since, saveEvery):
			w.fail("%s: the checkpoint of a retired agent is still stored after %v", path, w.now.Sub(since))
		}
	}
	for c := range p.waiting {
		if late(c.deadline, 0) {
			w.fail("a collection isn't answered %v after its deadline", w.now.Sub(c.deadline))
		}
	}
	if p.saving != nil && !p.hangs && late(p.asked, hungSave) {
		w.fail("a save hangs since %v, and this isn't reported", w.now.Sub(p.asked))
	}
}

// uncertain reports whether the store was too slow or failed, according to the notices. The
// positions in it may then be of an earlier time.
func (w *world) uncertain() bool {
	return w.kinds[notice.StoreSlow]+w.kinds[notice.StoreFailed]+w.kinds[notice.StoreHangs]+w.kinds[notice.CheckpointUnusable] > 0
}

// checkNotice checks that what is reported has happened.
func (p *process) checkNotice(n notice.Notice) {
	w := p.world
	path, _, _ := strings.Cut(n.Path, "#")
	saving := w.now.Sub(p.asked)
	ok := true
	switch n.Kind {
	case notice.RingOpened:
		p.reading[path] = p.openedAt(n.Path)
		if p.replaced[path] {
			w.known[path] = p.opened[p.reading[path]]
		}
		delete(p.replaced, path)
	case notice.RingRestart, notice.RingReplaced:
		// A position that another consumer stores can also be that of a restarted agent.
		// So can that of a ring that was released, if the crash came before its checkpoint was removed.
		ok = w.begun[path] > w.known[path] || w.back[path] ||
			(w.uncertain() || w.released[path] || w.taken[path]) && strings.Contains(n.Text, "since the last checkpoint")
		delete(p.mustReport, path)
		w.heard[path], p.replaced[path] = w.begun[path], n.Kind == notice.RingReplaced
		delete(w.takes, p.reading[path])
		if n.Kind == notice.RingRestart {
			w.known[path] = p.known[p.reading[path]]
		}
		if strings.Contains(n.Text, "since the last checkpoint") { // another agent may have started since
			w.known[path] = p.opened[p.reading[path]]
		}
		w.restarts[path]++
	case notice.RingForeign:
		if strings.HasPrefix(n.Text, "another process consumes") {
			ok = w.takes[p.reading[path]] > 0
		} else {
			ok = w.taken[path] || w.uncertain()
		}
		delete(w.takes, p.reading[path])
		delete(p.unreported, p.reading[path])
	case notice.RingLapped:
		ok = false
	case notice.RingBroken:
		// A simulated CPU may take longer than the reader waits for stores that are out of order.
		ok = w.plan.breaks || w.plan.reorders && w.plan.layouts
		p.reopens[path] = w.now
	case notice.RingFull:
		// After another consumer has moved the position back, a ring looks fuller than it is.
		ok = p.reading[path].full || w.taken[path]
	case notice.StoreFailed:
		ok = p.badSaves > 0 || p.hangs
	case notice.StoreRecovered:
		ok = w.kinds[notice.StoreFailed] > 0
	case notice.StoreHangs:
		ok = p.saving != nil && saving >= hungSave
		p.hangs = true
	case notice.StoreSlow:
		ok = p.saving != nil && saving >= slowSave
	case notice.ExportUnsaved:
		ok = p.badSaves > 0 || p.hangs
		for c := range p.waiting {
			ok = ok || !w.now.Before(c.deadline)
		}
	case notice.CheckpointUnusable:
		ok = p.loadFailed
	}
	if !ok {
		w.fail("wrong notice: %v (agent %d has started, %d is known)", n, w.begun[path], w.known[path])
	}
}

// checkRestarts checks that restarts that positions show are known, and that all that are
// reported are counted.
func (w *world) checkRestarts(path string, all sum) {
	if w.heard[path] < w.visible[path] {
		w.fail("%s: agent %d has started, but only %d is reported", path, w.visible[path], w.heard[path])
	}
	if all.restarts != w.restarts[path] {
		w.fail("%s: %d restarts are counted, but %d were reported", path, all.restarts, w.restarts[path])
	}
}

// usage is the memory usage of a run, according to the events that were counted by this process or, without a store, by any.
type usage struct {
	run int
	sum uint64
}

func (u usage) add(w *world, event uint64) usage {
	if u.run != w.runs[event] {
		u = usage{run: w.runs[event]}
	}
	u.sum += w.valueOf[event]
	return u
}

// usageOf returns the memory usage of the newest run.
func (w *world) usageOf(events lineage) (u usage) {
	for id := range events {
		if w.runs[id] >= u.run {
			u = u.add(w, id)
		}
	}
	return u
}

// checkUsage checks the memory usage if it is known. It is that of the newest run with
// counted events, unless another run has begun.
func (w *world) checkUsage(path string, a *agent) {
	got, known := a.tally.MemoryUsage()
	u, f := w.usage[path], w.files[path]
	begun := got == 0 && (f.run != u.run || f.unlinked)
	if known && !begun && uint64(got) != u.sum && w.plan.values == 0 && !w.taken[path] && !w.uncertain() {
		w.fail("%s: memory usage is %d, want %d", path, got, u.sum)
	}
}

// checkKnown checks that the memory usage is known if all events of the current run are counted in
// the same totals.
func (w *world) checkKnown(path string, a *agent) {
	if _, known := a.tally.MemoryUsage(); known || w.plan.streams || w.taken[path] || w.uncertain() || w.kinds[notice.RingBroken] > 0 {
		return
	}
	events, counted := 0, 0
	for id, of := range w.written {
		if of == path && w.runs[id] == w.files[path].run {
			events++
			if w.counted[path][id] {
				counted++
			}
		}
	}
	if events > 0 && counted == events {
		w.fail("%s: memory usage isn't known, although all %d events are counted", path, events)
	}
}
