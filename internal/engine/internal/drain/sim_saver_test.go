// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
)

// simSaver is the saver, without its goroutine. A save takes effect when it ends.
type simSaver struct {
	process *process
	entries map[string]stored // that the owner should have, by path: those of all pages
	until   time.Time         // when those of agents that haven't appeared may be forgotten

	current *simSave // nil between saves
	doneAt  time.Time
	hung    bool          // the current save never ends
	stall   time.Duration // how long the next save takes at least
	err     error         // result of the current save
}

// simSave is a save in progress.
type simSave struct {
	batch *batch
	ops   []checkpoint.Op
	pages []map[string]stored // what they contain
	paths []string            // of the agents whose totals are stored, and not only written again
}

var errDisk = errors.New("disk full")

// step ends the current save if it is time.
func (s *simSaver) step() {
	w, p := s.process.world, s.process
	if s.current == nil || s.hung || w.now.Before(s.doneAt) {
		return
	}
	if s.err == nil {
		s.apply()
	}
	w.note("saved %d: %v", len(s.current.ops), s.err)
	p.inbox = append(p.inbox, saved{s.err})
	if p.saving, p.hangs = nil, false; s.err != nil {
		p.badSaves++
	}
	s.current = nil
}

// save begins a save, and decides how long it takes, and whether it fails.
func (s *simSaver) save(b *batch, ops []checkpoint.Op, agents map[string]*agent, pending map[string]streams) {
	w := s.process.world
	s.current = &simSave{batch: b, ops: ops}
	written := make(map[string]bool)
	for _, op := range ops {
		s.check(op, agents, pending)
		written[op.Key] = true
	}
	for path := range w.store {
		if agents[path] == nil && !written[checkpoint.Keys()[checkpoint.PageOf(path)]] && !s.process.loadFailed {
			w.fail("%s: its agent was retired, but a save doesn't remove its checkpoint", path)
		}
	}
	took := time.Duration(w.IntN(1_000_000))
	if w.plan.slow {
		took = time.Duration(w.IntN(300)) * time.Millisecond
	}
	if s.hung = false; w.plan.hanging && w.IntN(50) == 0 {
		s.hung = w.IntN(3) == 0
		took = time.Duration(w.IntN(15)) * time.Second
	}
	took, s.stall = max(took, s.stall), 0
	s.doneAt, s.err = w.now.Add(took), nil
	if often := 4; w.plan.failing {
		if len(b.tickets) == 0 { // a checkpoint was removed, which is seldom
			often = 2
		}
		if w.IntN(often) == 0 {
			s.err = errDisk
		}
	}
}

// check checks that a page has the entries of all its agents, except of those that were retired
// and of those that haven't appeared in time.
func (s *simSaver) check(op checkpoint.Op, agents map[string]*agent, pending map[string]streams) {
	w, p := s.process.world, s.process
	number := slices.Index(checkpoint.Keys(), op.Key)
	values := make([][]byte, number+1)
	values[number] = op.Value
	page, errs := checkpoint.NewPages(values)
	if len(errs) > 0 {
		w.fail("%s can't be read: %v", op.Key, errs)
		return
	}
	for _, t := range s.current.batch.tickets {
		path := t.agent.ID
		if checkpoint.PageOf(path) != number || !t.agent.ended.IsZero() {
			continue
		}
		e, err := page.Get(path)
		if err != nil {
			w.fail("%s isn't stored: %v", path, err)
			continue
		}
		if d := cmp.Diff(pending[path], p.storedStreams(path, page), cmp.AllowUnexported(sum{})); d != "" {
			w.fail("%s: other predecessors are stored (-want +got):\n%s", path, d)
		}
		s.entries[path] = stored{
			lineage: p.countedBefore(path, e, page), known: w.known[path], restarts: w.restarts[path], began: w.began[path], mark: e.Mark,
		}
		s.current.paths = append(s.current.paths, path)
	}
	maps.DeleteFunc(s.entries, func(path string, _ stored) bool { return agents[path] == nil && !p.appeared[path] })
	content := make(map[string]stored)
	for path, one := range s.entries {
		if checkpoint.PageOf(path) == number {
			content[path] = one
		}
	}
	ids := slices.DeleteFunc(page.IDs(), func(id string) bool { return strings.Contains(id, checkpoint.Separator) })
	if want := slices.Sorted(maps.Keys(content)); !slices.Equal(want, ids) {
		w.fail("%s has the entries %q, want %q", op.Key, ids, want)
	}
	s.current.pages = append(s.current.pages, content)
}

// apply stores the pages of the current save.
func (s *simSaver) apply() {
	w := s.process.world
	for i, op := range s.current.ops {
		w.values[slices.Index(checkpoint.Keys(), op.Key)] = op.Value
		maps.DeleteFunc(w.store, func(path string, _ stored) bool { return checkpoint.Keys()[checkpoint.PageOf(path)] == op.Key })
		maps.Copy(w.store, s.current.pages[i])
	}
	for _, path := range s.current.paths {
		content := w.store[path]
		if content.mark.From == 0 && content.mark.To != 0 && w.plan.crashes && w.IntN(8) == 0 {
			w.doomed = true // before the commit from position 0
		}
		for id := range content.lineage {
			w.earlier[id] = true // stored totals have counted it, even if they are discarded later
		}
	}
}

// load loads all checkpoints into a new process. This may fail.
func (s *simSaver) load() {
	w, p := s.process.world, s.process
	if (w.plan.failing || w.plan.hanging) && w.IntN(8) == 0 {
		w.now = w.now.Add(checkpoint.LoadWait)
		p.loadFailed = true
		p.owner.load(nil, errDisk, w.now)
	} else {
		s.entries = maps.Clone(w.store)
		for path, got := range s.entries {
			w.counted[path], w.known[path], w.restarts[path], w.began[path] = maps.Clone(got.lineage), got.known, got.restarts, got.began
			w.usage[path] = w.usageOf(got.lineage)
		}
		p.owner.load(w.values[:], nil, w.now)
		for path := range s.entries {
			a := p.owner.agents[path]
			p.bare[path] = w.plan.streams && a.stream.Len() == 0
			maps.DeleteFunc(w.ended[path], func(start int64, _ sum) bool { return start > a.start.UnixNano() }) // it wasn't stored that they began
			n := a.tally.Registered().Events + w.earlierStreams(path, p.pending(path), a.start.UnixNano()).events
			if n != uint64(len(w.counted[path])) {
				w.fail("%s: continues with %d events, want %d", path, n, len(w.counted[path]))
			}
		}
	}
	s.until = w.now.Add(w.plan.staleAfter)
}

// simOffer is like Offer, and records the restored totals.
type simOffer struct {
	Offer
	world *world
}

func (m simOffer) apply(o *owner, now time.Time) {
	w, p, id := m.world, m.world.process, m.Agent.ID
	a := o.agents[id]
	if a == nil && !p.appeared[id] { // it is new, or was dropped because it hasn't appeared in time
		w.forget(id, p.fileOf(m.Reader))
	}
	p.appeared[id] = true
	if a == nil || !a.absent() {
		m.Offer.apply(o, now)
		return
	}
	mark := *a.resume
	f := p.fileOf(m.Reader)
	w.resuming(f, &mark)
	p.expectRestart(f, m.Reader, &mark)
	m.Offer.apply(o, now)
	if r := p.reader(id); r == m.Reader && r.Position() == mark.To && r.Committed() != 0 {
		w.resuming(f, &mark) // other events may have been written until the ring was looked at first
	}
}

// forget notes that an agent's totals begin at zero, with a ring.
func (w *world) forget(path string, f *simFile) {
	p := w.process
	n, delivered := len(w.counted[path]), p.delivered(path)
	if n > 0 && (w.now.Before(p.saver.until) || delivered != n && !p.bare[path]) {
		w.fail("%s: forgotten with %d events and %d delivered ones", path, n, delivered)
	}
	delete(p.saver.entries, path)
	maps.Copy(w.earlier, w.counted[path])
	w.counted[path], w.known[path], w.restarts[path], w.usage[path], w.began[path] = make(lineage), p.opened[f], 0, usage{}, w.now.UnixNano()
}
