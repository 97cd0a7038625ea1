// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// agent is an agent of a directory. It outlives its processes.
type agent struct {
	id         string // its key everywhere
	name, host string
	identity   drain.Agent // of its newest process

	processes []*process           // whose values aren't in the base, oldest first
	newest    *process             // the newest of all; nil if its store is gone since a restart of this program
	base      tally.Values         // of the processes that have exited
	earlier   bool                 // there are any
	counted   map[string]time.Time // the names of the stores that are in the base, and when they joined it
	bounds    []float64            // of the histograms of the totals
	start     time.Time            // of the totals

	last    drain.Snapshot // the newest; its totals are nil once they have changed
	loading bool           // its checkpoint isn't there yet
	loadBy  time.Time      // when it stops waiting for that
	dirty   bool           // it has changed since it was stored
	shared  bool           // that several of its processes run was reported

	changed   time.Time // when its values last changed
	shown     shown
	delivered time.Time // changed, as of the newest collection that was delivered
}

// shown is what the newest collection has seen of an agent.
type shown struct {
	collection uint64
	changed    time.Time
}

// process is a process of an agent, and its store.
type process struct {
	header

	file   string   // name of the store
	path   string   // of the store; empty if only the checkpoint names it
	open   *os.File // nil once nothing is read from it any more
	shape  *tally.Shape
	values tally.Values
	up     drain.Up
}

// started returns when a process started, which the name of its store says.
func (p *process) started(now time.Time) time.Time {
	if at := time.Unix(0, p.marker); at.Before(now) {
		return at
	}
	return now
}

func byAge(p, q *process) int {
	return cmp.Or(cmp.Compare(p.marker, q.marker), cmp.Compare(p.instance, q.instance), cmp.Compare(p.pid, q.pid))
}

// open returns how many stores of an agent are open.
func (a *agent) open() (n int) {
	for _, p := range a.processes {
		if p.open != nil {
			n++
		}
	}
	return n
}

// join lets a process count, unless it does already. The agent's checkpoint was
// loaded.
func (d *Directory) join(a *agent, p *process) {
	if _, done := a.counted[p.file]; done {
		d.close(a, p)
	} else {
		d.count(a, p)
	}
	if a.newest == nil || byAge(p, a.newest) >= 0 {
		a.newest, a.last.Totals = p, nil
		a.identity = d.cfg.Identify(drain.Agent{ID: a.id, Name: a.name, Dir: d.cfg.Dir, Path: p.path}, p.pid)
		a.bind(p.bounds)
	}
	if p.up == drain.UpNo {
		d.fold(a, p)
	}
}

// count adds a process, or its open store to one that the checkpoint names.
func (d *Directory) count(a *agent, p *process) {
	d.touch(a)
	now := d.cfg.Now()
	if at := p.started(now); a.start.IsZero() || at.Before(a.start) {
		a.start = at
	}
	d.poll(a, false) // an earlier process may have exited just now
	if i := slices.IndexFunc(a.processes, func(q *process) bool { return q.file == p.file }); i >= 0 {
		p.values.Advance(&a.processes[i].values)
		a.processes[i] = p
		return
	}
	again := a.earlier || len(a.processes) > 0
	at, _ := slices.BinarySearchFunc(a.processes, p, byAge)
	a.processes = slices.Insert(a.processes, at, p)
	if a.bounds != nil && !slices.Equal(a.bounds, p.bounds) {
		d.report(p.file, warn(notice.MPStoreBounds, fmt.Sprintf("agent %q has processes with different histogram bounds, so its histograms start from zero "+
			"with those of its newest process; set NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US to the same bounds everywhere", a.name), nil))
	}
	if again {
		d.report(p.file, info(notice.MPStoreRestart, fmt.Sprintf("agent %q has a new process; its totals continue", a.name)))
	}
	if a.open() > 1 && !a.shared {
		a.shared = true
		d.report(p.file, warn(notice.MPStoreShared, fmt.Sprintf(
			"several processes have an agent that is called %q, so their totals are added up; give each agent a name of its own", a.name), nil))
	}
}

// bind gives the histograms of an agent the bounds of its newest process.
func (a *agent) bind(bounds []float64) {
	if !slices.Equal(a.bounds, bounds) {
		a.base.Duration, a.base.Post = tally.Distribution{}, tally.Distribution{}
		a.bounds = bounds
	}
}

// add adds the values of a process to those of its agent.
func (a *agent) add(to *tally.Values, p *process) {
	if slices.Equal(a.bounds, p.bounds) {
		to.Add(&p.values)
	} else {
		to.AddWithoutHistograms(&p.values)
	}
}

// fold adds a process that has exited to the base. From then on its store is left
// alone.
func (d *Directory) fold(a *agent, p *process) {
	i := slices.Index(a.processes, p)
	if i < 0 {
		return
	}
	a.processes = slices.Delete(a.processes, i, i+1)
	a.add(&a.base, p)
	a.earlier = true
	if d.records[p.file] != nil { // or it was removed, and isn't found again
		a.counted[p.file] = d.cfg.Now()
	}
	a.shared, d.urgent = false, true
	d.touch(a)
	d.close(a, p)
}

// close closes the store of a process. Open stores count against the limit, and
// so do agents that have none.
func (d *Directory) close(a *agent, p *process) {
	if p.open == nil {
		return
	}
	_ = p.open.Close() // nothing was written
	p.open = nil
	d.closed()
	d.cfg.Rings.Leave(d.path(p.file))
	if a.open() == 0 {
		d.cfg.Rings.Admit(a.id)
	}
}

// probe finds out whether a process runs. Its store is read afterwards, so that
// the values of a process that has exited are its last.
func (p *process) probe() {
	switch running, err := held(p.open); {
	case err != nil:
		p.up = drain.UpUnknown
	case running:
		p.up = drain.UpYes
	default:
		p.up = drain.UpNo
	}
}

// poll brings the processes of an agent up to date. Without values, only those
// that have exited are read.
func (d *Directory) poll(a *agent, values bool) {
	for _, p := range slices.Backward(a.processes) { // fold removes p
		if p.open == nil {
			continue
		}
		p.probe()
		if !values && p.up != drain.UpNo {
			continue
		}
		if err := d.read(a, p); err != nil {
			p.up = drain.UpNo
			d.refuse(p.file, ringbuf.FileInfo{}, fmt.Errorf("%w; what was read until now stays in the totals", err))
		}
		if p.up == drain.UpNo && !a.loading {
			d.fold(a, p)
		}
	}
}

// read brings the values of a process up to date.
func (d *Directory) read(a *agent, p *process) error {
	if err := d.load(p.open, valuesFrom, valuesTo); err != nil {
		return err
	}
	parseValues(d.bytes[:], len(p.bounds), &d.values)
	if p.values.Advance(&d.values) {
		d.touch(a)
	}
	return nil
}

// up reports whether a process of an agent runs.
func (a *agent) up() drain.Up {
	up := drain.UpNo
	for _, p := range a.processes {
		switch p.up {
		case drain.UpYes:
			return drain.UpYes
		case drain.UpUnknown:
			if p.open != nil {
				up = drain.UpUnknown
			}
		case drain.UpNo:
		}
	}
	return up
}

// touch notes that the totals of an agent have changed.
func (d *Directory) touch(a *agent) { a.changed, a.dirty, a.last.Totals = d.cfg.Now(), true, nil }

// snapshot returns the totals of an agent. Nothing writes to them later, so those
// of an agent that is idle are made once.
func (d *Directory) snapshot(a *agent) drain.Snapshot {
	if a.last.Totals == nil {
		a.last = d.newSnapshot(a)
	}
	a.last.Up = a.up()
	return a.last
}

func (d *Directory) newSnapshot(a *agent) drain.Snapshot {
	total := &d.total
	if !a.earlier && len(a.processes) == 1 {
		total = &a.processes[0].values
	} else {
		total.Set(&a.base)
		for _, p := range a.processes {
			a.add(total, p)
		}
	}
	s := drain.Snapshot{
		Agent: a.identity,
		Start: a.start, Totals: a.newest.shape.Import(total, &a.base),
	}
	list := a.processes
	if a.open() == 0 {
		list = []*process{a.newest}
	}
	now := d.cfg.Now()
	for _, p := range list {
		if p.path == "" {
			continue // only its values are known
		}
		totals := s.Totals
		if total != &p.values {
			totals = p.shape.Import(&p.values, &tally.Values{})
		}
		s.Processes = append(s.Processes, drain.Process{
			PID: p.pid, Instance: p.instance, Host: p.host, LocalRank: p.rank, Start: p.started(now), Totals: totals,
		})
	}
	return s
}
