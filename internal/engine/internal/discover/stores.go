// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// StoreConfig configures how a [Directory] reads the stores of NIXL's prometheus_mp
// exporter. The patterns of the directory's configuration apply to the names of the agents.
type StoreConfig struct {
	// StaleAfter is the time after which the store of an exited process counts as old.
	StaleAfter time.Duration
	// Scope distinguishes agents of different pods; the directory's path if empty.
	Scope string
	// Identify sets the resource of an agent from one of its processes; it may be nil.
	Identify func(a drain.Agent, pid int64) drain.Agent
	// Uptime returns the time since the machine was started, if possible without the
	// time that it was suspended; the kernel's if nil.
	Uptime func() (time.Duration, error)
}

// stores opens and reads the stores in a directory, and sends their values to the owner.
// Only the directory's goroutine may use it, except for open.
type stores struct {
	*tracker

	cfg    StoreConfig
	files  map[string]*storeFile // by name
	order  []*storeFile          // files with an open store, in order of discovery
	values drain.Read            // not sent yet
	open   atomic.Int64          // their number
	buffer mpstore.Buffer
}

// storeFile describes a file with the name of a store.
type storeFile struct {
	name, path string
	store      *mpstore.Store // nil unless it is open
	is         *drain.Store   // describes the store to the owner
	up, sent   drain.Up       // up as of now, and in the last message

	done    bool   // the store is open, was read, or isn't selected; it isn't checked again
	walk    uint64 // the last walk that found the file
	claimed bool   // id is claimed in Rings, so that no other directory reads the file
	id      files.ID

	// While the file is refused:
	info  files.Info
	tried time.Time
	cause string // reported last
}

func newStores(t *tracker, cfg StoreConfig) *stores {
	if cfg.Scope == "" {
		cfg.Scope = t.cfg.Dir
	}
	if cfg.Identify == nil {
		cfg.Identify = func(a drain.Agent, _ int64) drain.Agent { return a }
	}
	if cfg.Uptime == nil {
		cfg.Uptime = files.Uptime
	}
	return &stores{tracker: t, cfg: cfg, files: make(map[string]*storeFile)}
}

// storeID returns the ID of an agent with stores. It differs from the ID of any agent with
// a ring.
func storeID(scope, host, agent string) string {
	return fmt.Sprintf("store %q %q %q", scope, host, agent)
}

// check opens the store at a name in an open directory, unless it is done. It reports false
// if the holder has no budget for another file.
func (s *stores) check(in *files.Dir, name string, walk uint64) bool {
	f := s.files[name]
	if f == nil {
		if s.tracker.cfg.Rings.use(s.tracker.cfg.Holder, someFiles, 1) != nil {
			return false
		}
		f = &storeFile{name: name, path: s.path(name)}
		s.files[name] = f
	}
	f.walk = walk
	if !f.done {
		s.tryStore(in, f)
	}
	return true
}

// tryStore opens a store, unless it is too early to try.
func (s *stores) tryStore(in *files.Dir, f *storeFile) {
	info, err := in.Lstat(f.name)
	if err == nil && f.info.Same(info) && s.tracker.cfg.Now().Before(f.tried.Add(maxRetry)) {
		return
	}
	if err == nil && !f.claimed {
		if f.id, f.claimed = info.ID, s.tracker.cfg.Rings.Claim(info.ID, f.path); !f.claimed {
			return // the file is read under another path
		}
	}
	if err == nil {
		err = s.openStore(in, f)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the file was just removed
	case err != nil:
		s.refuse(f, info, err)
	default:
		f.done = true
		s.setRefusal(f.path, nil)
	}
}

// openStore opens a store and reads its values, if its agent is selected.
func (s *stores) openStore(in *files.Dir, f *storeFile) error {
	c := &s.tracker.cfg
	file, err := in.OpenFile(f.name, os.O_RDONLY, c.AllowedUIDs...)
	if err != nil {
		return err
	}
	store, err := mpstore.Open(file, f.name)
	if err != nil {
		return err
	}
	if !c.selects(store.Agent) {
		return store.Close()
	}
	agent := drain.Agent{
		ID: storeID(s.cfg.Scope, store.Host, store.Agent), Name: store.Agent, Dir: c.Dir, Path: f.path, Holder: c.Holder,
	}
	if !c.Rings.has(agent.ID) { // the store of a new process takes the place of an exited one
		if err := c.Rings.admit(c.Holder); err != nil {
			return errors.Join(err, store.Close())
		}
	}
	id := agent.ID
	agent = c.Resource.describe(s.cfg.Identify(agent, store.PID))
	agent.ID = id
	f.is = &drain.Store{Agent: agent, From: s.source, File: f.name, Bounds: store.Bounds, Process: drain.Process{
		PID: store.PID, Instance: store.Instance, Host: store.Host, LocalRank: store.LocalRank, Start: store.Start,
	}}
	if now := c.Now(); store.Start.After(now) {
		f.is.Process.Start = now
	}
	f.store = store
	f.probe()
	values, err := store.Read(&s.buffer, nil)
	if err != nil {
		f.store = nil
		return errors.Join(err, store.Close())
	}
	s.opened(f)
	s.add(f, drain.Values{Values: values, Old: f.up == drain.UpNo && s.isOld(store)})
	return nil
}

// probe checks whether the process of a store is running. The store must be read
// afterwards, so that the values of an exited process are final.
func (f *storeFile) probe() {
	switch running, err := f.store.Running(); {
	case err != nil:
		f.up = drain.UpUnknown
	case running:
		f.up = drain.UpYes
	default:
		f.up = drain.UpNo
	}
}

// isOld reports whether the last update of a store is older than StaleAfter, or from
// before the machine was started.
func (s *stores) isOld(store *mpstore.Store) bool {
	uptime, err := s.cfg.Uptime()
	if err != nil {
		return false
	}
	idle, known := store.Idle(uptime)
	return !known || idle >= s.cfg.StaleAfter
}

// probeAll looks for processes that have exited, and reads their stores one last time. It
// sends all values that were read.
func (s *stores) probeAll() {
	for _, f := range slices.Backward(s.order) { // read removes f
		if f.probe(); f.up != f.sent {
			s.read(f)
		}
	}
	s.flush()
}

// readAll sends the values that have changed. It doesn't probe the processes: the values of
// a process that has just exited are read here, and once more when its exit is noticed.
func (s *stores) readAll() {
	for _, f := range slices.Backward(s.order) { // read removes f
		s.read(f)
	}
	s.flush()
}

// flush sends the values that were read.
func (s *stores) flush() {
	if len(s.values) > 0 {
		s.send(s.values)
		s.values = nil // the owner may still use it
	}
}

// read reads a store, and adds its values to the next message if they or the state of its
// process have changed. It closes the store if the process has exited, or the store can't
// be read.
func (s *stores) read(f *storeFile) {
	spare := f.is.Spare.Swap(nil)
	values, err := f.store.Read(&s.buffer, spare)
	if values == nil {
		f.is.Spare.Store(spare)
	}
	if err != nil {
		f.up = drain.UpNo
		s.refuse(f, files.Info{}, fmt.Errorf("%w; earlier values stay in the totals", err))
	}
	if values != nil || f.up != f.sent {
		s.add(f, drain.Values{Values: values})
	}
}

// add adds the values of a store to the next message. It closes the store if they are final.
func (s *stores) add(f *storeFile, m drain.Values) {
	m.Store, m.Up, f.sent = f.is, f.up, f.up
	s.values = append(s.values, m)
	if f.up == drain.UpNo {
		s.close(f)
	}
}

// opened counts an open store. The limit applies to open stores, and to agents without one.
func (s *stores) opened(f *storeFile) {
	rings := s.tracker.cfg.Rings
	rings.Add(f.path, s.tracker.cfg.Holder)
	rings.Remove(f.is.Agent.ID)
	s.order = append(s.order, f)
	s.count(1)
}

// close closes a store.
func (s *stores) close(f *storeFile) {
	_ = f.store.Close() // nothing was written
	f.store = nil
	s.order = slices.DeleteFunc(s.order, func(g *storeFile) bool { return g == f })
	s.count(-1)
	rings := s.tracker.cfg.Rings
	rings.Remove(f.path)
	if !slices.ContainsFunc(s.order, func(g *storeFile) bool { return g.is.Agent.ID == f.is.Agent.ID }) {
		rings.Add(f.is.Agent.ID, s.tracker.cfg.Holder)
	}
}

func (s *stores) count(n int) {
	s.open.Add(int64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rings += n
}

// refuse records and reports that a file can't be read as a store.
func (s *stores) refuse(f *storeFile, info files.Info, err error) {
	n := notice.Notice{
		Kind: notice.MPStoreRefused, Level: slog.LevelWarn, Path: f.path, Err: err,
		Text: "store can't be read, so its process isn't counted; retrying",
	}
	budget := (*budgetError)(nil)
	switch {
	case errors.As(err, &budget):
		n.Kind, n.Text = notice.BudgetReached, textBudget
		info = files.Info{} // the next walk tries again
		s.crowd(true)
	case errors.Is(err, errLimit):
		n.Kind, n.Level = notice.MPStoreLimit, slog.LevelError
		info = files.Info{}
		s.crowd(false)
	case errors.Is(err, fs.ErrPermission):
		n.Text += "; stores have mode 0600, so run as the agents' user, or with CAP_DAC_READ_SEARCH"
	}
	f.done, f.info, f.tried = false, info, s.tracker.cfg.Now()
	s.setRefusal(f.path, &Refusal{Reason: storeReason(err), Err: err})
	if f.cause != err.Error() {
		f.cause = err.Error()
		s.report(n)
	}
}

// storeReason returns the value of the metric attribute reason for an error.
func storeReason(err error) string {
	switch {
	case errors.Is(err, mpstore.ErrVersion):
		return "version"
	case errors.Is(err, mpstore.ErrInvalid), errors.Is(err, files.ErrNotRegular):
		return "invalid"
	default:
		return reason(err)
	}
}

// sweep forgets the files that the last walk, which was complete, didn't find. A removed
// store stays open until its process exits.
func (s *stores) sweep(walk uint64) {
	for _, f := range s.files {
		if f.walk != walk && f.store == nil {
			s.forget(f)
		}
	}
}

func (s *stores) forget(f *storeFile) {
	delete(s.files, f.name)
	s.tracker.cfg.Rings.free(s.tracker.cfg.Holder, someFiles, 1)
	s.setRefusal(f.path, nil)
	if f.claimed {
		s.tracker.cfg.Rings.Release(f.id)
	}
}

// end closes all stores.
func (s *stores) end() {
	for _, f := range slices.Clone(s.order) {
		s.close(f)
	}
	for _, f := range s.files {
		s.forget(f)
	}
}
