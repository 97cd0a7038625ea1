// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// The attributes of an agent's totals include the number of its process. A search finds it, possibly after the ring was
// opened. If it changes, a successor begins at zero. So the events that were counted are those of the agent's
// current totals, of its predecessors, and of the predecessors that were delivered.

// sum is what totals have counted.
type sum struct{ events, value, restarts uint64 }

func sumOf(t *tally.Totals) sum {
	registered := t.Registered()
	return sum{registered.Events, registered.Sum.Lo, t.Restarts()}
}

func (s sum) plus(o sum) sum {
	return sum{s.events + o.events, s.value + o.value, s.restarts + o.restarts}
}

// streams are the totals of an agent's predecessors, by the time when they began.
type streams map[int64]sum

// sent is what was delivered of an agent's totals, except of its predecessors.
type sent struct {
	start  int64
	events uint64
}

// attributes are those under which totals are exported.
func (w *world) attributes(s *Snapshot) attribute.Set {
	return attribute.NewSet(append(s.Process.ToSlice(), attribute.String("host.name", "node"))...)
}

// unattributed is the number of a process that no search has found.
const unattributed = -1

// agent describes the agent of a file, whose process may be known.
func (w *world) agent(f *simFile, process int) Agent {
	a := Agent{ID: f.path, Name: f.path[len("/rings/"):], Dir: "/rings", Path: f.location()}
	if w.plan.limits {
		a.Holder.Container = f.location()
	}
	switch {
	case !w.plan.streams:
	case process == unattributed:
		a.Attribution = Left
	default:
		a.Process = attribute.NewSet(attribute.Int("process.pid", process))
	}
	return a
}

// offered describes the agent of a ring that is offered. A search may find its process later.
func (p *process) offered(f *simFile) Agent {
	w := p.world
	a := w.agent(f, f.process)
	delete(p.told, f)
	delete(p.seekAt, f)
	if !w.plan.streams {
		return a
	}
	if w.IntN(2) == 0 {
		p.told[f] = f.process
		return a
	}
	if w.IntN(4) == 0 {
		p.seekAt[f] = w.now.Add(time.Duration(w.IntN(30)) * time.Second)
	}
	a.Attribution, a.Process = Sought, attribute.Set{}
	return a
}

// search reports the processes of open rings that the owner doesn't know.
func (p *process) search() {
	w := p.world
	if !w.plan.streams || len(p.late) > 0 || w.IntN(20) > 0 { // several changes at once would begin streams at the same time
		return
	}
	for _, a := range w.agents {
		f := w.files[a.path]
		told, ok := p.told[f]
		if p.open[f] == nil || ok && told == f.process || w.now.Before(p.seekAt[f]) {
			continue
		}
		if p.told[f] = f.process; !ok && w.IntN(4) == 0 {
			p.told[f] = unattributed
		}
		p.tell(f, Attributed{Was: a.path, Agent: w.agent(f, p.told[f]), Reader: p.open[f]}, func() {})
	}
}

// exhaust makes the container of an agent reach its limit of work, for up to three periods.
func (p *process) exhaust(a *simAgent) {
	w := p.world
	w.note("%s: its container causes too much work", a.path)
	p.owner.work[w.agent(a.file, 0).Holder] = maxWork * (1 + w.IntN(3))
	p.exhausted[a.path] = w.now
}

// limited reports whether the ring of a path may have waited since a time, because its container has caused too much work.
func (p *process) limited(path string, since time.Time) bool {
	at, ok := p.exhausted[path]
	return ok && !since.After(at)
}

// pending returns the totals of a path's predecessors that aren't delivered.
func (p *process) pending(path string) streams {
	list := make(streams)
	for _, b := range p.owner.order {
		if b.ID == path && !b.ended.IsZero() {
			list[b.start.UnixNano()] = sumOf(&b.tally.Totals)
		}
	}
	return list
}

// earlierStreams returns what the predecessors of a path have counted, given those that aren't delivered, and when the
// current stream began. After a crash, that can be one that had ended.
func (w *world) earlierStreams(path string, pending streams, current int64) (all sum) {
	list := maps.Clone(pending)
	for start, s := range w.ended[path] {
		if _, ok := list[start]; !ok && start != current {
			list[start] = s
		}
	}
	for start, s := range list {
		if start >= w.began[path] {
			all = all.plus(s)
		}
	}
	return all
}

// delivered returns the number of counted events of a path that were delivered, or will be as those of a predecessor.
func (p *process) delivered(path string) int {
	w, pending, s := p.world, p.pending(path), p.sent[path]
	n := w.earlierStreams(path, pending, s.start).events
	if _, waits := pending[s.start]; !waits {
		n += s.events
	}
	return int(n)
}

// deliver records what a collection that was delivered contains.
func (p *process) deliver(c Collection) {
	for _, s := range c.Snapshots {
		start := s.Start.UnixNano()
		if s.End.IsZero() {
			p.sent[s.ID] = sent{start, s.Totals.Registered().Events}
			continue
		}
		p.world.end(s.ID, start, sumOf(s.Totals))
	}
}

// end records a predecessor that will not be exported again.
func (w *world) end(path string, start int64, s sum) {
	if w.ended[path] == nil {
		w.ended[path] = make(streams)
	}
	w.ended[path][start] = s
}

// pendings are the predecessors of all paths that aren't delivered.
func (p *process) pendings() map[string]streams {
	all := make(map[string]streams)
	for _, b := range p.owner.order {
		if !b.ended.IsZero() && all[b.ID] == nil {
			all[b.ID] = p.pending(b.ID)
		}
	}
	return all
}

// loseStreams records the predecessors that are gone since before a step, because an agent had too many.
func (p *process) loseStreams(before map[string]streams) {
	for _, n := range p.notices {
		for path, list := range before {
			about := n.Path == "" || n.Path == path || strings.HasPrefix(n.Path, path+"#") // the path of an absent agent isn't known
			if n.Kind != notice.StreamLost || !about {
				continue
			}
			now := p.pending(path)
			for start, s := range list {
				if _, waits := now[start]; !waits {
					p.world.end(path, start, s)
				}
			}
		}
	}
}

// storedStreams returns what the entries of a page contain of an agent's predecessors.
func (p *process) storedStreams(path string, page *checkpoint.Pages) streams {
	list := make(streams)
	for _, id := range page.IDs() {
		number, ok := strings.CutPrefix(id, path+checkpoint.Separator)
		if !ok {
			continue
		}
		start, err := strconv.ParseInt(number, 10, 64)
		e, errEntry := page.Get(id)
		if err != nil || errEntry != nil {
			p.world.fail("%q can't be read: %v %v", id, err, errEntry)
			continue
		}
		totals, err := p.world.shape.Restore(e.Totals)
		if err != nil {
			p.world.fail("%q: %v", id, err)
			continue
		}
		list[start] = sumOf(&totals.Totals)
	}
	return list
}

// checkHolders checks that the owner knows how many agents each container has.
func (p *process) checkHolders() {
	absent, holders := 0, make(map[Holder]int)
	for _, a := range p.owner.agents {
		if a.absent() {
			absent++
		} else {
			holders[a.Holder]++
		}
	}
	if absent != p.owner.absent || !maps.Equal(holders, p.owner.rings) {
		p.world.fail("%d agents are absent and the others' containers are %v, but the owner has %d and %v", absent, holders, p.owner.absent, p.owner.rings)
	}
}
