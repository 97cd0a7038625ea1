// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// imports converts values to totals. It reuses the memory of earlier collections, because
// allocating it is most of the cost of a collection.
type imports struct {
	histograms bool         // totals have histograms of times
	shape      *tally.Shape // of bounds
	bounds     []float64
	sum        tally.Values

	// Released by their receiver:
	totals    []*tally.Totals
	snapshots []Snapshot
	processes []Process
}

// start gives a collection memory for the snapshots of a number of agents.
func (i *imports) start(c *collect, agents int) {
	c.snapshots, c.processes = i.snapshots[:0], i.processes[:0]
	i.snapshots, i.processes = nil, nil
	c.snapshots = slices.Grow(c.snapshots, agents)
}

// convert converts the values of a store or of an agent with such bounds. v includes before,
// the values of the processes that have exited.
func (i *imports) convert(bounds []float64, v, before *tally.Values) *tally.Totals {
	if i.shape == nil || !slices.Equal(i.bounds, bounds) {
		shape, err := tally.ImportShape(bounds, i.histograms)
		if err != nil { // the bounds were checked when the store was opened
			shape, _ = tally.ImportShape(nil, false)
		}
		i.shape, i.bounds = shape, bounds
	}
	var into *tally.Totals
	if n := len(i.totals); n > 0 {
		into, i.totals = i.totals[n-1], i.totals[:n-1]
	}
	return i.shape.Import(v, before, into)
}

// snapshotStores adds the totals of an agent with stores to a snapshot: those of its
// processes together, and those of each process.
func (o *owner) snapshotStores(to *Snapshot, s *stores, c *collect) {
	s.exported = true
	in := &o.imports
	total := o.sumStores(s)
	to.Totals = in.convert(s.bounds, total, &s.base)
	first := len(c.processes)
	for _, p := range s.reported() {
		p.shownIn = c.number
		one := p.Process
		if one.Totals = to.Totals; total != p.values {
			one.Totals = in.convert(p.Bounds, p.values, &noValues)
		}
		c.processes = append(c.processes, one)
	}
	to.Processes = c.processes[first:len(c.processes):len(c.processes)]
}

// sumStores returns the values of an agent's processes together. They are valid until the next
// call.
func (o *owner) sumStores(s *stores) *tally.Values {
	if !s.hasBase && len(s.processes) == 1 && s.processes[0].before == nil {
		return s.processes[0].values
	}
	total := &o.imports.sum
	total.Set(&s.base)
	for _, p := range s.processes {
		s.add(total, p)
	}
	return total
}

// snapshotProcesses adds stored totals to a snapshot.
func (o *owner) snapshotProcesses(to *Snapshot, p *tally.Processes) {
	to.Totals = o.imports.convert(p.Bounds, &p.Base, &noValues)
	for i := range p.Running {
		one := describe(&p.Running[i])
		one.Totals = o.imports.convert(p.Bounds, &p.Running[i].Values, &noValues)
		to.Processes = append(to.Processes, one)
	}
}

// noValues are the values of no process. Nothing writes to them.
var noValues tally.Values

// reported returns the processes to report by themselves, oldest first: those that are
// running, those whose final values weren't delivered, and at least the newest.
func (s *stores) reported() []*processStore {
	if len(s.exited) == 0 && len(s.processes) > 0 {
		return s.processes
	}
	list := slices.Concat(s.processes, s.exited)
	if len(list) == 0 {
		list = append(list, s.newest)
	}
	slices.SortFunc(list, byAge)
	return list
}

// delivered records that a collection was exported: it reported the final values of these
// processes.
func (s *stores) delivered(collection uint64) {
	s.exited = slices.DeleteFunc(s.exited, func(p *processStore) bool { return p.shownIn == collection })
}

// released returns a collection whose receiver no longer uses it.
type released struct{ collected }

func (m released) apply(o *owner, _ time.Time) {
	in := &o.imports
	for i := range m.snapshots {
		s := &m.snapshots[i]
		if len(s.Processes) == 0 {
			continue // of a ring
		}
		in.totals = append(in.totals, s.Totals)
		for _, p := range s.Processes {
			if p.Totals != s.Totals {
				in.totals = append(in.totals, p.Totals)
			}
		}
	}
	clear(m.snapshots)
	clear(m.processes)
	in.snapshots, in.processes = m.snapshots, m.processes
}
