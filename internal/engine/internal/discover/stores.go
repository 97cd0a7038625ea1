// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// StoreConfig configures how a [Directory] reads the stores of NIXL's prometheus_mp
// exporter. The patterns of the directory's configuration apply to the names of the agents.
type StoreConfig struct {
	Claims *StoreClaims // shared by all directories of an engine
	// StaleAfter is how long the store of an exited process is reported after its last update.
	StaleAfter time.Duration
	Histograms bool // report the histograms of the stores
	// Identify sets the ID and the resource of an agent from one of its processes; it may be nil.
	Identify func(a drain.Agent, pid int64) drain.Agent
	// Stream returns the attributes under which a backend sees a store; it may be nil.
	Stream func(*drain.Snapshot) attribute.Set
}

// StoreClaims limits the number of stores, and makes sure that a store in several directories, such as
// those of two containers, is reported by one of them.
type StoreClaims struct {
	mu      sync.Mutex
	limit   int
	holders map[storeID]drain.Holder
	counts  map[drain.Holder]int
}

// storeID identifies the store of a process. After its last values were read, its file is closed, so
// the file of another store may get its inode.
type storeID struct {
	files.ID

	name string
}

// NewStoreClaims returns a StoreClaims that allows limit stores.
func NewStoreClaims(limit int) *StoreClaims {
	return &StoreClaims{limit: limit, holders: make(map[storeID]drain.Holder), counts: make(map[drain.Holder]int)}
}

// maxStores limits the stores of a container or pod.
const maxStores = 256

var (
	errManyStores = fmt.Errorf("container or pod has more than %d stores; remove those of exited processes", maxStores)
	errTaken      = errors.New("store is reported from another directory")
)

// claim reserves a store for a directory of a holder.
func (c *StoreClaims) claim(id storeID, h drain.Holder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.holders[id]
	switch {
	case taken:
		return errTaken
	case len(c.holders) >= c.limit:
		return errLimit
	case h.Isolated() && c.counts[h] >= maxStores:
		return errManyStores
	}
	c.holders[id] = h
	c.counts[h]++
	return nil
}

// release is the reverse of claim.
func (c *StoreClaims) release(id storeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[id]
	delete(c.holders, id)
	if c.counts[h]--; c.counts[h] == 0 {
		delete(c.counts, h)
	}
}

// stores reads the stores in a directory. Only the directory's goroutine may use it.
type stores struct {
	*tracker

	cfg   StoreConfig
	files map[string]*storeFile // by name
	open  atomic.Int64          // stores that are reported
}

// storeFile is a file with the name of a store.
type storeFile struct {
	name, path string
	walk       uint64 // the last walk that found the file
	done       bool   // the store was opened, or isn't reported; it isn't opened again

	store    *mpstore.Store // nil unless it is open
	claim    storeID
	snapshot drain.Snapshot // the newest values; without totals unless the store is reported
	exported bool           // a collection has included the final values

	// While the file is refused:
	info  files.Info
	tried time.Time
	cause string // reported last
}

func newStores(t *tracker, cfg StoreConfig) *stores {
	if cfg.Identify == nil {
		cfg.Identify = func(a drain.Agent, _ int64) drain.Agent { return a }
	}
	if cfg.Stream == nil {
		cfg.Stream = func(*drain.Snapshot) attribute.Set { return attribute.Set{} }
	}
	return &stores{tracker: t, cfg: cfg, files: make(map[string]*storeFile)}
}

// check opens the store at a name in an open directory, unless it was opened before or it is too
// early to try again.
func (s *stores) check(in *files.Dir, name string, walk uint64) {
	f := s.files[name]
	if f == nil {
		f = &storeFile{name: name, path: s.path(name)}
		s.files[name] = f
	}
	f.walk = walk
	if f.done {
		return
	}
	now := s.tracker.cfg.Now()
	info, err := in.Lstat(name)
	if err == nil && f.info.Same(info) && now.Before(f.tried.Add(maxRetry)) {
		return
	}
	if err == nil {
		f.info, f.tried = info, now
		err = s.tryOpen(in, f)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errTaken):
	case err != nil:
		s.refuse(f, err)
	default:
		f.done = true
		s.setRefusal(f.path, nil)
	}
}

// tryOpen opens a store and reads it, unless its agent isn't selected or its process exited
// long ago.
func (s *stores) tryOpen(in *files.Dir, f *storeFile) error {
	c := &s.tracker.cfg
	file, err := in.OpenFile(f.name, os.O_RDONLY, c.AllowedUIDs...)
	if err != nil {
		return err
	}
	store, err := mpstore.Open(file, f.name, s.cfg.Histograms)
	if err != nil {
		return err
	}
	if running, err := store.Running(); !c.selects(store.Agent) || err == nil && !running && s.isOld(store) {
		return store.Close()
	}
	id := storeID{f.info.ID, f.name}
	if err := s.cfg.Claims.claim(id, c.Holder); err != nil {
		return errors.Join(err, store.Close())
	}
	f.store, f.claim = store, id
	s.count(1)
	f.snapshot = s.identify(f)
	if err := s.read(f); err != nil {
		s.drop(f)
		return err
	}
	s.report(notice.Notice{
		Kind: notice.MPStoreOpened, Level: slog.LevelInfo, Path: f.path, Text: fmt.Sprintf("store opened (agent %q, process %d)", store.Agent, store.PID),
	})
	return nil
}

// identify returns the snapshot of a store without totals. A store belongs to one process, so
// a restarted agent has another ID.
func (s *stores) identify(f *storeFile) drain.Snapshot {
	c, h := &s.tracker.cfg, &f.store.Header
	a := drain.Agent{ID: s.path(h.Agent), Name: h.Agent, Dir: c.Dir, Path: f.path, Holder: c.Holder}
	a = c.Resource.describe(s.cfg.Identify(a, h.PID))
	a.ID += " " + f.name
	a.Process = withDefault(a.Process, attribute.Int64(semconv.ProcessPID, h.PID))
	if h.LocalRank != "" {
		a.Resource = withDefault(a.Resource, attribute.String(semconv.LocalRank, h.LocalRank))
	}
	snapshot := drain.Snapshot{Agent: a, Store: true, Start: h.Start}
	snapshot.Stream = s.cfg.Stream(&snapshot)
	return snapshot
}

// withDefault adds an attribute to a set that doesn't have its key.
func withDefault(set attribute.Set, kv attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append([]attribute.KeyValue{kv}, set.ToSlice()...)...) // the last value of a key wins
}

// isOld reports whether the last update of a store is older than StaleAfter, or from
// before the machine was started.
func (s *stores) isOld(store *mpstore.Store) bool {
	uptime, err := files.Uptime()
	idle := uptime - store.Updated
	return err == nil && (idle < 0 || idle >= s.cfg.StaleAfter)
}

// read reads an open store. If its process has exited, the values are final.
func (s *stores) read(f *storeFile) error {
	running, unknown := f.store.Running() // before reading
	exited := unknown == nil && !running
	totals, err := f.store.Read(exited)
	if err != nil {
		return err
	}
	f.snapshot.Totals = totals
	switch {
	case exited:
		f.snapshot.Up = drain.UpNo
		_ = f.store.Close() // nothing was written; an open file would keep a volume in use
	case running:
		f.snapshot.Up = drain.UpYes
	}
	return nil
}

// readAll reads all stores, and returns those to report.
func (s *stores) readAll() (list []drain.Snapshot) {
	now := s.tracker.cfg.Now()
	for _, f := range s.files {
		s.update(f, true)
		if f.store == nil {
			continue
		}
		if f.snapshot.Start.After(now) { // the clock was set back
			f.snapshot.Start = now
		}
		f.exported = f.snapshot.Up == drain.UpNo
		list = append(list, f.snapshot)
	}
	return list
}

// refresh reads the stores of processes that have exited one last time.
func (s *stores) refresh() {
	for _, f := range s.files {
		s.update(f, false)
	}
}

// update reads a store unless its values are final. Without always, it reads only the store of an
// exited process. It drops stores that are no longer reported.
func (s *stores) update(f *storeFile, always bool) {
	switch {
	case f.store == nil:
		return
	case f.snapshot.Up == drain.UpNo:
		if f.exported && s.isOld(f.store) {
			s.drop(f)
		}
		return
	case !always:
		if running, err := f.store.Running(); running || err != nil {
			return
		}
	}
	if err := s.read(f); err != nil {
		s.drop(f)
		f.done = false
		s.refuse(f, err)
	}
}

// drop stops reporting a store.
func (s *stores) drop(f *storeFile) {
	if f.snapshot.Up != drain.UpNo { // otherwise, it is closed
		_ = f.store.Close()
	}
	f.store = nil
	s.cfg.Claims.release(f.claim)
	s.count(-1)
}

// count adds to the number of stores that are reported.
func (s *stores) count(n int) {
	s.open.Add(int64(n))
	s.tracker.count(n)
}

// refuse records and reports that a file can't be read as a store.
func (s *stores) refuse(f *storeFile, err error) {
	n := notice.Notice{
		Kind: notice.MPStoreRefused, Level: slog.LevelWarn, Path: f.path, Err: err,
		Text: "store can't be read, so its process isn't reported; retrying",
	}
	reason := reason(err)
	switch {
	case errors.Is(err, errLimit), errors.Is(err, errManyStores):
		n.Kind, n.Level, reason = notice.MPStoreLimit, slog.LevelError, "limit"
		n.Path = s.tracker.cfg.Dir // one line for all files
	case errors.Is(err, mpstore.ErrVersion):
		reason = "version"
	case errors.Is(err, mpstore.ErrInvalid), errors.Is(err, files.ErrNotRegular):
		reason = "invalid"
	case reason == "permission":
		n.Text += "; stores have mode 0600, so run as the agents' user, or with CAP_DAC_READ_SEARCH"
	}
	s.setRefusal(f.path, &Refusal{Reason: reason, Err: err})
	if f.cause != err.Error() {
		f.cause = err.Error()
		s.report(n)
	}
}

// sweep forgets the files that the last walk didn't find. A removed store is reported until its
// process has exited, and then as long as any other.
func (s *stores) sweep(walk uint64) {
	for name, f := range s.files {
		if f.walk == walk {
			continue
		}
		if f.store != nil && f.snapshot.Up == drain.UpUnknown { // its process is never known to exit
			s.drop(f)
		}
		if f.store == nil {
			delete(s.files, name)
			s.setRefusal(f.path, nil)
		}
	}
}

// end closes all stores.
func (s *stores) end() {
	for _, f := range s.files {
		if f.store != nil {
			s.drop(f)
		}
	}
	clear(s.files)
}
