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

// agent is an agent in a directory. It may have several processes over time.
type agent struct {
	id         string
	name, host string
	identity   drain.Agent // of the newest process

	processes []*process           // processes whose values aren't in the base, oldest first
	newest    *process             // nil until a store was opened
	base      tally.Values         // sum of the exited processes
	hasBase   bool                 // there is at least one exited process
	counted   map[string]time.Time // when each store was added to the base, by file name
	bounds    []float64            // of the totals' histograms
	start     time.Time            // of the totals

	loading bool      // the checkpoint isn't loaded yet
	loadBy  time.Time // deadline for loading it
	dirty   bool      // changed since the last checkpoint
	shared  bool      // the notice about several running processes was reported

	changed   time.Time // when the values last changed
	collected collected
	delivered time.Time // value of changed in the newest collection that was delivered
}

// collected describes the state of an agent in the newest collection.
type collected struct {
	collection uint64
	changed    time.Time
}

// process is a process of an agent, and its store.
type process struct {
	header

	file   string    // name of the store
	path   string    // path of the store; empty if only the checkpoint names it
	open   *os.File  // nil after the store was closed
	start  time.Time // from the store's name, but not in the future; zero if only the checkpoint names it
	shape  *tally.Shape
	values tally.Values
	up     drain.Up
}

func byAge(p, q *process) int {
	return cmp.Or(cmp.Compare(p.marker, q.marker), cmp.Compare(p.instance, q.instance), cmp.Compare(p.pid, q.pid))
}

// open returns the number of the agent's open stores.
func (a *agent) open() (n int) {
	for _, p := range a.processes {
		if p.open != nil {
			n++
		}
	}
	return n
}

// addProcess adds a process to its agent, unless the base already contains it. The
// agent's checkpoint must have been loaded.
func (d *Directory) addProcess(a *agent, p *process) {
	if _, done := a.counted[p.file]; done {
		d.close(a, p)
	} else {
		d.countProcess(a, p)
	}
	if a.newest == nil || byAge(p, a.newest) >= 0 {
		a.newest = p
		a.identity = d.cfg.Identify(drain.Agent{ID: a.id, Name: a.name, Dir: d.cfg.Dir, Path: p.path}, p.pid)
		a.setBounds(p.bounds)
	}
	if p.up == drain.UpNo {
		d.fold(a, p)
	}
}

// countProcess adds a process to its agent's totals. If the checkpoint names the
// process, p continues from the values in the checkpoint.
func (d *Directory) countProcess(a *agent, p *process) {
	a.markChanged(d.cfg.Now())
	if a.start.IsZero() || p.start.Before(a.start) {
		a.start = p.start
	}
	d.checkExits(a) // an earlier process may have just exited
	if i := slices.IndexFunc(a.processes, func(q *process) bool { return q.file == p.file }); i >= 0 {
		p.values.Raise(&a.processes[i].values)
		a.processes[i] = p
		return
	}
	again := a.hasBase || len(a.processes) > 0
	at, _ := slices.BinarySearchFunc(a.processes, p, byAge)
	a.processes = slices.Insert(a.processes, at, p)
	if a.bounds != nil && !slices.Equal(a.bounds, p.bounds) {
		d.report(p.file, warn(notice.MPStoreBounds, fmt.Sprintf("agent %q has processes with different histogram bounds, so its histograms restart from zero "+
			"with the bounds of its newest process; set NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US to the same bounds everywhere", a.name), nil))
	}
	if again {
		d.report(p.file, info(notice.MPStoreRestart, fmt.Sprintf("agent %q has a new process; its totals continue", a.name)))
	}
	if a.open() > 1 && !a.shared {
		a.shared = true
		d.report(p.file, warn(notice.MPStoreShared, fmt.Sprintf(
			"several processes have an agent named %q, so their totals are added up; give each agent a unique name", a.name), nil))
	}
}

// setBounds sets the bounds of the agent's histograms. If they have changed, the
// histograms of the base are reset.
func (a *agent) setBounds(bounds []float64) {
	if !slices.Equal(a.bounds, bounds) {
		a.base.Duration, a.base.Post = tally.Distribution{}, tally.Distribution{}
		a.bounds = bounds
	}
}

// add adds the values of a process to the agent's values in to.
func (a *agent) add(to *tally.Values, p *process) {
	if slices.Equal(a.bounds, p.bounds) {
		to.Add(&p.values)
	} else {
		to.AddWithoutHistograms(&p.values)
	}
}

// fold adds an exited process to the base and closes its store.
func (d *Directory) fold(a *agent, p *process) {
	i := slices.Index(a.processes, p)
	if i < 0 {
		return
	}
	a.processes = slices.Delete(a.processes, i, i+1)
	a.add(&a.base, p)
	a.hasBase = true
	now := d.cfg.Now()
	if d.records[p.file] != nil { // a store that was removed can't be found again
		a.counted[p.file] = now
	}
	a.shared, d.saveSoon = false, true
	a.markChanged(now)
	d.close(a, p)
}

// close closes the store of a process. The limit applies to open stores and to agents
// without an open store.
func (d *Directory) close(a *agent, p *process) {
	if p.open == nil {
		return
	}
	_ = p.open.Close() // nothing was written
	p.open = nil
	d.countOpen(-1)
	d.cfg.Rings.Remove(d.path(p.file))
	if a.open() == 0 {
		d.cfg.Rings.Add(a.id)
	}
}

// probe checks whether a process is running. The store must be read after probe, so
// that the values of an exited process are final.
func (p *process) probe() {
	switch running, err := isLocked(p.open); {
	case err != nil:
		p.up = drain.UpUnknown
	case running:
		p.up = drain.UpYes
	default:
		p.up = drain.UpNo
	}
}

// checkExits probes the processes of an agent, and adds those that have exited to the
// base.
func (d *Directory) checkExits(a *agent) {
	for _, p := range slices.Backward(a.processes) { // read removes p
		if p.open == nil {
			continue
		}
		if p.probe(); p.up == drain.UpNo {
			d.read(a, p, d.cfg.Now())
		}
	}
}

// readAll reads the open stores of an agent. It doesn't probe its processes: the values
// of a process that has just exited are read here, and once more after checkExits
// notices the exit.
func (d *Directory) readAll(a *agent, now time.Time) {
	for _, p := range slices.Backward(a.processes) { // read removes p
		if p.open != nil {
			d.read(a, p, now)
		}
	}
}

// read updates the values of a process from its store. If the process has exited, or its
// store can't be read, it adds them to the base.
func (d *Directory) read(a *agent, p *process, now time.Time) {
	if err := d.readAt(p.open, valuesFrom, valuesTo); err != nil {
		p.up = drain.UpNo
		d.refuse(p.file, ringbuf.FileInfo{}, fmt.Errorf("%w; earlier values stay in the totals", err))
	} else if update(&p.values, d.bytes[:], len(p.bounds)) {
		a.markChanged(now)
	}
	if p.up == drain.UpNo && !a.loading {
		d.fold(a, p)
	}
}

// up returns whether a process of the agent is running.
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

// markChanged records that the totals of an agent have changed.
func (a *agent) markChanged(now time.Time) { a.changed, a.dirty = now, true }

// snapshot returns the totals of an agent, in the memory of b.
func (d *Directory) snapshot(a *agent, b *buffers) drain.Snapshot {
	total := &d.total
	if !a.hasBase && len(a.processes) == 1 {
		total = &a.processes[0].values
	} else {
		total.Set(&a.base)
		for _, p := range a.processes {
			a.add(total, p)
		}
	}
	s := drain.Snapshot{
		Agent: a.identity, Start: a.start, Up: a.up(), Totals: b.totalsOf(a.newest.shape, total, &a.base),
	}
	list := a.processes
	if a.open() == 0 {
		list = []*process{a.newest}
	}
	first := len(b.processes)
	for _, p := range list {
		if p.path == "" {
			continue // known only from the checkpoint
		}
		totals := s.Totals
		if total != &p.values {
			totals = b.totalsOf(p.shape, &p.values, &tally.Values{})
		}
		b.processes = append(b.processes, p.describe(totals))
	}
	s.Processes = b.processes[first:len(b.processes):len(b.processes)]
	return s
}

// describe returns the process with its totals.
func (p *process) describe(totals *tally.Totals) drain.Process {
	return drain.Process{
		PID: p.pid, Instance: p.instance, Host: p.host, LocalRank: p.rank, Start: p.start, Totals: totals,
	}
}
