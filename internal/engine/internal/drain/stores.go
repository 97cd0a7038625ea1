// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Store describes a store of NIXL's prometheus_mp exporter: the totals of one process of
// an agent. A source sends its values with [Read].
type Store struct {
	Agent   Agent // Path is that of the store
	From    Source
	File    string    // name of the store; identifies the process
	Process Process   // without totals
	Bounds  []float64 // of the histograms, in microseconds
	// Spare are values that the owner no longer uses. The source may reuse their memory.
	Spare atomic.Pointer[tally.Values]
}

// Read reports the values of stores that a source has read, in one message, because each
// message can cause a step.
type Read []Values

func (m Read) apply(o *owner, now time.Time) {
	for i := range m {
		o.read(&m[i], now)
	}
}

// Values are the values of a store. They replace earlier values of the same process.
type Values struct {
	Store  *Store
	Values *tally.Values // nil if unchanged; the owner may change them
	Up     Up            // UpNo if these are the final values, because the process has exited
	// Old reports that the process has exited and its store wasn't updated for StaleAfter.
	// It is then counted only if the agent's checkpoint names it.
	Old bool
}

const (
	// lostWait is the time until a store that only the checkpoint names counts as removed.
	// It is longer than it takes to find all directories of an agent.
	lostWait = 10 * time.Second
	// sharedWait is the time until several processes of an agent are reported. The exit of
	// the previous process may be noticed after the start of the next one.
	sharedWait = 10 * time.Second
	// maxExited limits the processes of an agent that are reported after they have exited.
	maxExited = 64
	// maxCounted limits the stores of an agent that are known to be in the base. Each is in
	// every checkpoint of the agent for StaleAfter. If more processes exit in that time,
	// their stores are counted again if they are found again.
	maxCounted = 256
)

// stores are the totals of an agent that has stores instead of a ring: the sum of the
// processes that have exited, called the base, plus the values of the others. So each
// process is counted once.
type stores struct {
	processes []*processStore // processes that aren't in the base, oldest first
	exited    []*processStore // processes in the base that are reported once more, oldest first
	newest    *processStore   // nil until a store was counted
	streamed  *processStore   // newest as of the last call of continueProcesses, or else of the checkpoint's processes
	resumed   bool            // the stream is the checkpoint's, and continueProcesses hasn't compared its attributes
	base      tally.Values
	hasBase   bool                 // there is at least one exited process
	counted   map[string]time.Time // when a store was added to the base, by name
	bounds    []float64            // of the totals' histograms
	changed   bool                 // the values have changed since they were stored
	exported  bool                 // the totals were exported, so their start can't change

	waiting []Values  // until the checkpoint is loaded
	alone   time.Time // when at most one process was running
	shared  bool      // it was reported that several processes are running
}

// processStore is a process of an agent, and its store.
type processStore struct {
	*Store

	known   bool          // the store was found, not only named by the checkpoint
	values  *tally.Values // never nil
	before  *tally.Values // the part of values that belongs to an earlier stream; may be nil
	up      Up
	shownIn uint64 // the newest collection that included the process
}

func byAge(p, q *processStore) int {
	return cmp.Or(p.Process.Start.Compare(q.Process.Start), cmp.Compare(p.Process.Instance, q.Process.Instance), cmp.Compare(p.File, q.File))
}

func insert(list []*processStore, p *processStore) []*processStore {
	at, _ := slices.BinarySearchFunc(list, p, byAge)
	return slices.Insert(list, at, p)
}

func find(list []*processStore, file string) *processStore {
	if i := slices.IndexFunc(list, func(p *processStore) bool { return p.File == file }); i >= 0 {
		return list[i]
	}
	return nil
}

// read handles the values of a store.
func (o *owner) read(m *Values, now time.Time) {
	if o.stopped {
		return
	}
	a := o.agents[m.Store.Agent.ID]
	if a == nil {
		a = o.newStores(m.Store, now)
	}
	if a.opening != nil {
		a.stores.waiting = append(a.stores.waiting, *m)
		return
	}
	o.update(a, m, now)
}

// newStores adds an agent with stores. It isn't reported until one of them is counted.
func (o *owner) newStores(s *Store, now time.Time) *agent {
	a := &agent{Agent: s.Agent, source: s.From}
	a.heard(now)
	a.stores = &stores{counted: make(map[string]time.Time), alone: now}
	o.agents[a.ID] = a
	if o.saves {
		a.opening = &Opened{Agent: s.Agent, From: s.From}
		o.openLater(a, now.Add(loadWait))
		o.do(loadEffect{a.ID, checkpoint.Key(a.ID)})
	} else {
		o.openLater(a, now.Add(lostWait))
	}
	return a
}

// restoreStores restores an agent from its checkpoint, if there is one, and adds the
// stores that were found in the meantime.
func (o *owner) restoreStores(a *agent, m loaded, now time.Time) {
	s := a.stores
	waiting := s.waiting
	a.opening, a.loadErr, a.loadAt, s.waiting = nil, nil, time.Time{}, nil
	o.openLater(a, now.Add(lostWait))
	stored, start, err := m.processes()
	switch {
	case err != nil:
		o.report(a, warn(notice.CheckpointUnusable, fmt.Sprintf(
			"checkpoint of agent %q can't be used, so its totals include only the existing stores", a.Name), err))
	case stored != nil:
		a.name, a.stream, a.ended, a.start = stored.Name, stored.Attributes, stored.Ended, start
		s.restore(a, stored.Processes, now)
		s.exported, s.resumed = true, o.cfg.Stream != nil
	}
	for i := range waiting {
		o.update(a, &waiting[i], now)
	}
}

// processes decodes the checkpoint of an agent with stores, and returns the start of its
// totals. It returns nil if there is none.
func (m loaded) processes() (*tally.State, time.Time, error) {
	if m.err != nil || m.value == nil {
		return nil, time.Time{}, m.err
	}
	mark, stored, err := checkpoint.Parse(m.value)
	if err != nil {
		return nil, time.Time{}, err
	}
	state, err := tally.RestoreProcesses(stored)
	return &state, time.Unix(0, mark.Start), err
}

func (s *stores) restore(a *agent, from *tally.Processes, now time.Time) {
	s.bounds, s.base, s.hasBase = from.Bounds, from.Base, from.Exited
	for _, file := range from.Counted {
		s.counted[file] = now
	}
	dir := filepath.Dir(a.Path)
	for i := range from.Running {
		one := &from.Running[i]
		p := &processStore{
			Store:  &Store{File: one.Store, Bounds: s.bounds, Agent: a.Agent, From: a.source, Process: describe(one)},
			values: &one.Values, before: one.Before, up: UpNo,
		}
		p.Agent.Path = filepath.Join(dir, one.Store)
		s.processes = insert(s.processes, p)
	}
	if n := len(s.processes); n > 0 {
		s.streamed = s.processes[n-1]
	}
}

// state returns what a checkpoint contains.
func (s *stores) state() *tally.Processes {
	stored := &tally.Processes{Bounds: s.bounds, Base: s.base, Exited: s.hasBase}
	for file := range s.counted {
		stored.Counted = append(stored.Counted, file)
	}
	slices.Sort(stored.Counted)
	for _, p := range s.processes {
		stored.Running = append(stored.Running, s.stored(p))
	}
	return stored
}

// stored returns what a checkpoint contains of a process.
func (s *stores) stored(p *processStore) tally.ProcessValues {
	of := &p.Process
	one := tally.ProcessValues{
		Store: p.File, PID: of.PID, Instance: of.Instance, Start: of.Start.UnixNano(), Host: of.Host, LocalRank: of.LocalRank, Values: *p.values,
	}
	if p.before != nil {
		before := *p.before
		one.Before = &before
	}
	if !slices.Equal(p.Bounds, s.bounds) {
		one.Values.Duration, one.Values.Post = tally.Distribution{}, tally.Distribution{}
		if one.Before != nil {
			one.Before.Duration, one.Before.Post = tally.Distribution{}, tally.Distribution{}
		}
	}
	return one
}

// describe returns the process of stored values, without totals.
func describe(v *tally.ProcessValues) Process {
	return Process{PID: v.PID, Instance: v.Instance, Host: v.Host, LocalRank: v.LocalRank, Start: time.Unix(0, v.Start)}
}

// update updates a process of an agent whose checkpoint was loaded.
func (o *owner) update(a *agent, m *Values, now time.Time) {
	s := a.stores
	p := find(s.processes, m.Store.File)
	switch {
	case p == nil && s.isCounted(m.Store.File):
		o.countedBefore(a, m)
		return
	case p == nil && m.Old:
		o.reportStore(m.Store, info(notice.MPStoreOld, fmt.Sprintf(
			"store isn't reported, because its process (agent %q, process %d) has exited and the store wasn't updated for %v; it can be removed",
			a.Name, m.Store.Process.PID, o.cfg.StaleAfter)))
		return
	case p == nil:
		p = &processStore{Store: m.Store, values: new(tally.Values)}
		o.addProcess(a, p)
	case p.Store != m.Store: // the checkpoint named it, or another directory has it now
		p.Store = m.Store
		o.foundStore(a, p)
	}
	if s.resumed { // with other attributes, what was counted since the checkpoint belongs to the next stream
		o.continueProcesses(a, now)
	}
	if m.Values != nil {
		m.Values.Raise(p.values) // counters never decrease
		m.Store.Spare.Store(p.values)
		p.values, s.changed = m.Values, true
		a.heard(now)
	}
	if p.up = m.Up; p.up == UpNo {
		o.fold(a, p, now)
	}
	a.setUp()
}

// addProcess adds a process to its agent's totals.
func (o *owner) addProcess(a *agent, p *processStore) {
	s := a.stores
	if start := p.Process.Start; a.start.IsZero() || !s.exported && start.Before(a.start) {
		a.start = start
	}
	o.reportStore(p.Store, info(notice.MPStoreOpened, fmt.Sprintf("store opened (agent %q, process %d)", p.Agent.Name, p.Process.PID)))
	if s.bounds != nil && !slices.Equal(s.bounds, p.Bounds) {
		o.reportStore(p.Store, warn(notice.MPStoreBounds, fmt.Sprintf("agent %q has processes with different histogram bounds, so its histograms restart from zero "+
			"with the bounds of its newest process; set NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US to the same bounds everywhere", a.Name), nil))
	}
	if s.hasBase || len(s.processes) > 0 {
		o.reportStore(p.Store, info(notice.MPStoreRestart, fmt.Sprintf("agent %q has a new process; its totals continue", a.Name)))
	}
	s.processes = insert(s.processes, p)
	o.foundStore(a, p)
}

// foundStore records that the store of a process exists. The newest process determines the
// agent's resource and the bounds of its histograms.
func (o *owner) foundStore(a *agent, p *processStore) {
	s := a.stores
	p.known = true
	if s.newest == nil || byAge(p, s.newest) >= 0 {
		s.newest = p
		a.Agent, a.source = p.Agent, p.From
		s.setBounds(p.Bounds)
	}
	o.enter(a)
}

// countedBefore handles a store that is in the base, such as one that was found again after
// the Collector was restarted. Its process is reported once more.
func (o *owner) countedBefore(a *agent, m *Values) {
	s := a.stores
	if m.Values == nil || find(s.exited, m.Store.File) != nil {
		return
	}
	p := &processStore{Store: m.Store, values: m.Values, up: UpNo}
	s.addExited(p)
	o.foundStore(a, p)
	a.setUp()
}

// fold adds a process that has exited to the base.
func (o *owner) fold(a *agent, p *processStore, now time.Time) {
	s := a.stores
	s.processes = slices.DeleteFunc(s.processes, func(q *processStore) bool { return q == p })
	s.add(&s.base, p)
	s.hasBase = true
	if len(s.counted) < maxCounted {
		s.counted[p.File] = now
	}
	s.addExited(p)
	a.heard(now)
	a.dirty = true // the store may be removed, so store its values soon
}

// addExited reports a process until it was delivered.
func (s *stores) addExited(p *processStore) {
	s.exited = insert(s.exited, p)
	s.exited = s.exited[max(0, len(s.exited)-maxExited):]
}

// setBounds sets the bounds of the agent's histograms. If they have changed, the
// histograms of the base are reset.
func (s *stores) setBounds(bounds []float64) {
	if !slices.Equal(s.bounds, bounds) {
		s.base.Duration, s.base.Post = tally.Distribution{}, tally.Distribution{}
		s.bounds = bounds
	}
}

// add adds the values of a process to the agent's values in to.
func (s *stores) add(to *tally.Values, p *processStore) {
	v := p.values
	if p.before != nil {
		v = new(tally.Values)
		v.Set(p.values)
		v.Sub(p.before)
	}
	if slices.Equal(s.bounds, p.Bounds) {
		to.Add(v)
	} else {
		to.AddWithoutHistograms(v)
	}
}

// up returns whether a process of the agent is running.
func (s *stores) up() Up {
	up := UpNo
	for _, p := range s.processes {
		switch p.up {
		case UpYes:
			return UpYes
		case UpUnknown:
			up = UpUnknown
		case UpNo:
		}
	}
	return up
}

// setUp updates what is known about the exit of an agent with stores.
func (a *agent) setUp() {
	a.exit.up = a.stores.up()
	a.exit.complete = a.exit.up == UpNo
}

// running returns the number of processes that haven't exited, as far as is known.
func (s *stores) running() (n int) {
	for _, p := range s.processes {
		if p.up != UpNo {
			n++
		}
	}
	return n
}

// dueStores ends the wait for stores that only the checkpoint names: they were removed. It
// removes an agent without any store to report.
func (o *owner) dueStores(a *agent, now time.Time) {
	a.openBy = time.Time{}
	if a.stores.newest == nil {
		o.forget(a)
		return
	}
	for _, p := range slices.Clone(a.stores.processes) {
		if !p.known {
			o.reportStore(p.Store, warn(notice.MPStoreLost, fmt.Sprintf(
				"store of agent %q was removed before its last values were read; events counted after the last checkpoint are missing from the totals", a.Name), nil))
			o.fold(a, p, now)
		}
	}
}

// checkStores does the periodic work for an agent with stores.
func (o *owner) checkStores(a *agent, now time.Time) {
	s := a.stores
	for file, at := range s.counted {
		if now.Sub(at) >= o.cfg.StaleAfter { // the store is old by now, so it isn't counted again
			delete(s.counted, file)
		}
	}
	switch {
	case s.running() <= 1:
		s.alone, s.shared = now, false
	case !s.shared && now.Sub(s.alone) >= sharedWait:
		s.shared = true
		o.report(a, warn(notice.MPStoreShared, fmt.Sprintf(
			"several processes have an agent named %q, so their totals are added up; give each agent a unique name", a.Name), nil))
	}
}

func (s *stores) isCounted(file string) bool {
	_, counted := s.counted[file]
	return counted
}

func (o *owner) reportStore(s *Store, n notice.Notice) {
	n.Path, n.Pod, n.Container = s.Agent.Path, s.Agent.Holder.Pod, s.Agent.Holder.Container
	o.do(reportEffect{n})
}
