// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// process is one run of the Collector: an owner, a source of rings, a saver and
// a receiver that collects.
type process struct {
	world *world
	owner *owner
	inbox []Message
	next  time.Time // when the owner wants to run
	open  map[*simFile]*ringbuf.Reader
	tryAt map[string]time.Time   // when to try to open the ring of a path
	gone  map[*simFile]time.Time // when to send Gone
	shut  map[*simFile]time.Time // ctimes of the files whose rings were closed
	saver simSaver
}

func (w *world) boot() {
	w.note("the Collector starts")
	p := &process{
		world: w, open: make(map[*simFile]*ringbuf.Reader), tryAt: make(map[string]time.Time),
		gone: make(map[*simFile]time.Time), shut: make(map[*simFile]time.Time),
	}
	p.saver.process = p
	cfg := &Config{
		Shape: w.shape, Mode: ringbuf.Consume, RunInterval: 100 * time.Millisecond, StaleAfter: time.Hour,
		Tap: p.tap,
	}
	p.owner = newOwner(cfg, w.plan.saves)
	for path := range w.files {
		p.tryAt[path] = w.now
		w.counted[path] = make(lineage)
	}
	w.process = p
}

// tap sees each event as it is counted.
func (p *process) tap(a Agent, b ringbuf.Batch) {
	w := p.world
	for i := range b.Len() {
		id := b.Event(i).Value
		w.pushedByRestart(a.ID, id)
		switch path, ok := w.written[id]; {
		case !ok || path != a.ID:
			w.fail("%s: event %d was counted, but never written there", a.ID, id)
		case w.counted[a.ID][id]:
			w.fail("%s: event %d was counted twice", a.ID, id)
		default:
			w.counted[a.ID][id] = true
			w.note("%s: event %d is counted", a.ID, id)
		}
	}
}

// step runs what is due in the process, in random order.
func (p *process) step() {
	for _, path := range slices.Sorted(maps.Keys(p.tryAt)) {
		if at := p.tryAt[path]; !p.world.now.Before(at) {
			p.tryOpen(path)
		}
	}
	p.findChanged()
	p.attend()
	p.sendGone()
	p.saver.step()
	if len(p.inbox) == 0 && p.world.now.Before(p.next) {
		return
	}
	in := p.inbox
	p.inbox = nil
	next, effects := p.owner.step(p.world.now, in)
	p.next = next
	for path, a := range p.owner.agents {
		f := p.world.files[path]
		if a.reader != nil && a.reader == p.open[f] && a.pace.lastDrain.Equal(p.world.now) { // the owner has checked the ring
			f.taken = 0
		}
	}
	for _, e := range effects {
		e.run(p)
	}
}

func (p *process) tryOpen(path string) {
	f := p.world.files[path]
	delete(p.tryAt, path)
	if p.open[f] != nil {
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
	r, err := ringbuf.NewReader(f.bytes()[:m.size], m, ringbuf.Consume)
	if err != nil {
		p.tryAt[path] = p.world.now.Add(time.Duration(1+p.world.IntN(20)) * time.Millisecond)
		return
	}
	p.world.note("%s: opened, %v with %d slots, read to %d", path, r.Layout(), r.Capacity(), r.Committed())
	f.locked = true
	p.open[f] = r
	p.inbox = append(p.inbox, Opened{Agent: Agent{ID: path, Name: path[len("/rings/"):], Dir: "/rings", Path: f.location()}, Reader: r, From: p})
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
		if r := p.open[w.files[a.path]]; r != nil {
			p.inbox = append(p.inbox, Attended{ID: a.path, Reader: r, Open: a.alive, Known: true})
			if w.plan.closes && !a.alive {
				p.inbox = append(p.inbox, Gone{ID: a.path, Reader: r})
			}
		}
	}
	for _, f := range p.goneFiles() {
		p.inbox = append(p.inbox, Attended{ID: f.path, Reader: p.open[f], Known: true})
	}
}

// goneFiles returns the open files whose containers are gone, in order.
func (p *process) goneFiles() (list []*simFile) {
	for f := range p.open {
		if f != p.world.files[f.path] {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(f, g *simFile) int { return strings.Compare(f.location(), g.location()) })
	return list
}

// sendGone sends Gone messages.
func (p *process) sendGone() {
	for _, f := range p.goneFiles() {
		if at, waits := p.gone[f]; waits && !p.world.now.Before(at) {
			delete(p.gone, f)
			p.world.note("%s: the container is gone", f.location())
			p.inbox = append(p.inbox, Gone{ID: f.path, Reader: p.open[f]})
		}
	}
}

// process implements Source.

func (p *process) Close(r *ringbuf.Reader) {
	p.lose(r, "gone", true)
	for f, open := range p.open {
		if open == r {
			p.world.note("%s: closed", f.location())
			f.locked = false
			delete(p.open, f)
			p.shut[f] = f.changed
		}
	}
}

func (p *process) Reopen(a Agent, r *ringbuf.Reader) {
	p.lose(r, "restart", true)
	p.Close(r)
	if p.open[p.world.files[a.ID]] == nil {
		p.tryAt[a.ID] = p.world.now.Add(time.Duration(p.world.IntN(5)) * time.Millisecond)
	}
}

func (p *process) Retire(_ Agent, r *ringbuf.Reader) { p.Close(r) }

func (p *process) Refuse(a Agent, r *ringbuf.Reader) {
	p.lose(r, "gone", false) // it was refused until then
	p.Reopen(a, r)
}

// lose records the events of a ring that can't be opened again as lost.
func (p *process) lose(r *ringbuf.Reader, why string, watched bool) {
	for _, f := range p.goneFiles() {
		if p.open[f] == r {
			p.world.loseGone(f, why, watched)
		}
	}
}

// process implements env.

func (p *process) load(path, key string) {
	p.saver.queue = append([]*request{{key: key, path: path}}, p.saver.queue...)
}

func (p *process) save(b *batch, ops []checkpoint.Op) {
	r := &request{batch: b, ops: ops, lineages: make(map[string]lineage)}
	for _, op := range ops {
		r.lineages[op.Key] = maps.Clone(p.world.counted[op.Key[len("agent:"):]])
	}
	p.saver.queue = append(p.saver.queue, r)
}

func (p *process) forget(key string) { delete(p.world.store, key) }

func (p *process) reply(c *collect) {
	c.done(collected{number: c.number, snapshots: c.snapshots})
}

func (p *process) report(n notice.Notice) {
	p.world.note("notice: %v", n)
	p.world.notices = append(p.world.notices, seen{n, p.world.now})
}

func (p *process) collect() {
	c := &collect{deadline: p.world.now.Add(hungSave)}
	c.done = func(got collected) {
		p.world.note("collected %d agents", len(got.snapshots))
		p.inbox = append(p.inbox, delivered{got.number})
	}
	p.inbox = append(p.inbox, c)
}

// simSaver simulates the storage extension and the saver.
type simSaver struct {
	process *process
	queue   []*request
	current *request
	doneAt  time.Time
	hung    bool // the current call never returns
}

type request struct {
	path, key string // of a load
	batch     *batch // of a save
	ops       []checkpoint.Op
	lineages  map[string]lineage
}

func (s *simSaver) step() {
	w := s.process.world
	if s.current == nil && len(s.queue) > 0 {
		s.current, s.queue = s.queue[0], s.queue[1:]
		s.doneAt = w.now.Add(time.Duration(w.IntN(1_000_000)))
		if w.plan.slow {
			s.doneAt = w.now.Add(time.Duration(w.IntN(300)) * time.Millisecond)
		}
		s.hung = w.plan.hanging && w.IntN(50) == 0
	}
	if s.current == nil || s.hung || w.now.Before(s.doneAt) {
		return
	}
	r := s.current
	s.current = nil
	var err error
	if w.plan.failing && w.IntN(4) == 0 {
		err = errors.New("disk full")
	}
	if r.ops == nil {
		s.answerLoad(r, err)
		return
	}
	if err == nil {
		s.apply(r)
	}
	w.note("saved %d: %v", len(r.ops), err)
	s.process.inbox = append(s.process.inbox, saved{r.batch, err})
}

func (s *simSaver) apply(r *request) {
	w := s.process.world
	for _, op := range r.ops {
		w.store[op.Key] = stored{op.Value, r.lineages[op.Key]}
		for id := range r.lineages[op.Key] {
			w.earlier[id] = true // stored totals have counted it, even if they are discarded later
		}
	}
}

func (s *simSaver) answerLoad(r *request, err error) {
	w := s.process.world
	m := loaded{id: r.path, err: err}
	if got, ok := w.store[r.key]; ok && err == nil {
		m.value = got.value
	}
	w.note("%s: loaded, %v", r.path, err)
	s.process.inbox = append(s.process.inbox, simLoaded{m, w})
}

// simLoaded is like loaded, and records the restored totals.
type simLoaded struct {
	loaded
	world *world
}

func (m simLoaded) apply(o *owner, now time.Time) {
	if a := o.agents[m.id]; a != nil && a.opening != nil && m.value != nil {
		m.world.counted[m.id] = maps.Clone(m.world.store["agent:"+m.id].lineage)
	}
	m.loaded.apply(o, now)
}
