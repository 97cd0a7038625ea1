// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Stores configures how the stores of NIXL's prometheus_mp exporter are read in all directories of an engine. The
// patterns of [Config] apply to the names of the agents.
type Stores struct {
	Limit int // on the number of stores
	// StaleAfter is how long the store of an exited process is reported after its last update.
	StaleAfter time.Duration
	Histograms bool // report the histograms of the stores
	// Stream returns the attributes under which a backend sees a store; it may be nil.
	Stream func(*drain.Snapshot) attribute.Set

	mu      sync.Mutex
	claimed map[storeKey]drain.Holder
}

// storeKey identifies a store. After the last values of a store were read, its file is closed, so the file of another
// one may get its inode.
type storeKey struct {
	file files.ID
	name string
}

// maxStores limits the stores of a container or pod.
const maxStores = 256

// claim reserves a store for a directory of a holder, so that a store in several directories, such as
// those of two containers, is reported by one of them.
func (c *Stores) claim(key storeKey, h drain.Holder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := 0
	for _, other := range c.claimed {
		if other == h {
			same++
		}
	}
	_, taken := c.claimed[key]
	switch {
	case taken:
		return errTaken
	case len(c.claimed) >= c.Limit:
		return drain.ErrLimit
	case h.Isolated() && same >= maxStores:
		return errManyStores
	case c.claimed == nil:
		c.claimed = make(map[storeKey]drain.Holder)
	}
	c.claimed[key] = h
	return nil
}

// release is the reverse of claim.
func (c *Stores) release(key storeKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claimed, key)
}

// store is a store that is reported.
type store struct {
	*mpstore.Store

	key      storeKey
	snapshot drain.Snapshot // the newest values
	exported bool           // a collection has included the final values
	reported int            // number of series of unknown events that were reported
}

// openStore opens the store of a path and reads it, unless its agent isn't selected or its process exited
// long ago.
func (d *Directory) openStore(in *files.Dir, r *record, info files.Info) error {
	file, err := in.OpenFile(r.Name, os.O_RDONLY, d.cfg.AllowedUIDs...)
	if err != nil {
		return err
	}
	opened, err := mpstore.Open(file, r.Name, d.cfg.Stores.Histograms)
	if err != nil {
		return err
	}
	r.of, r.sought = info.ID, time.Now()
	s := &store{Store: opened, key: storeKey{info.ID, r.Name}, snapshot: d.describeStore(r, &opened.Header)}
	if err = s.read(); err == nil && (!matchesAny(d.cfg.Include, s.Agent) || s.snapshot.Up == drain.UpNo && d.isOld(s)) {
		err = drain.ErrUnneeded
	}
	if err == nil {
		err = d.cfg.Stores.claim(s.key, d.at.Holder)
	}
	if err != nil {
		_ = s.Close() // it was only read
		return err
	}
	r.store, r.info = s, info
	d.open.Add(1)
	d.setState(r, open)
	d.report(notice.Notice{
		Kind: notice.MPStoreOpened, Level: slog.LevelInfo, Path: r.Path, Text: fmt.Sprintf("store opened (agent %q, process %d)", s.Agent, s.PID),
	})
	return nil
}

// describeStore returns the snapshot of a store without totals. A store belongs to one process, so
// a restarted agent has another ID.
func (d *Directory) describeStore(r *record, h *mpstore.Header) drain.Snapshot {
	a := drain.Agent{ID: d.path(h.Agent), Name: h.Agent, Dir: d.at.Path, Path: r.Path, Holder: d.at.Holder}
	a = d.accept(r, d.attributed(&record{Agent: a, sought: r.sought}, r.of))
	a.ID += " " + r.Name
	a.Process = withDefault(a.Process, attribute.Int64(semconv.ProcessPID, h.PID))
	if h.LocalRank != "" {
		a.Resource = withDefault(a.Resource, attribute.String(semconv.LocalRank, h.LocalRank))
	}
	snapshot := drain.Snapshot{Agent: a, Store: true, Start: h.Start}
	if stream := d.cfg.Stores.Stream; stream != nil {
		snapshot.Stream = stream(&snapshot)
	}
	return snapshot
}

// withDefault adds an attribute to a set that doesn't have its key.
func withDefault(set attribute.Set, kv attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append([]attribute.KeyValue{kv}, set.ToSlice()...)...) // the last value of a key wins
}

// isOld reports whether the last update of a store is older than StaleAfter, or from
// before the machine was started.
func (d *Directory) isOld(s *store) bool {
	uptime, err := files.Uptime()
	idle := uptime - s.Updated
	return err == nil && (idle < 0 || idle >= d.cfg.Stores.StaleAfter)
}

// read reads an open store. If its process has exited, the values are final.
func (s *store) read() error {
	running, unknown := s.Running() // before reading
	exited := unknown == nil && !running
	totals, err := s.Read(exited)
	if err != nil {
		return err
	}
	s.snapshot.Totals = totals
	switch {
	case exited:
		s.snapshot.Up = drain.UpNo
		_ = s.Close() // nothing was written; an open file would keep a volume in use
	case running:
		s.snapshot.Up = drain.UpYes
	}
	return nil
}

// readAll reads all stores, and returns those to report.
func (d *Directory) readAll() (list []drain.Snapshot) {
	now := d.cfg.Now()
	for _, r := range d.records {
		d.update(r)
		if s := r.store; s != nil {
			if s.snapshot.Start.After(now) { // the clock was set back
				s.snapshot.Start = now
			}
			if s.snapshot.Attribution == drain.Sought {
				continue
			}
			s.exported = s.snapshot.Up == drain.UpNo
			d.reportUnknown(r)
			list = append(list, s.snapshot)
		}
	}
	return list
}

// reportUnknown reports events of types that aren't known, once for each type. The process may set a type back to 0.
func (d *Directory) reportUnknown(r *record) {
	series := r.store.snapshot.Totals.Series()
	for _, n := range drain.Unknown(series[min(r.store.reported, len(series)):]) {
		n.Path = r.Path
		d.report(n)
	}
	r.store.reported = max(r.store.reported, len(series))
}

// update reads the store of a path, unless its values are final, or drops it if it is no longer reported.
func (d *Directory) update(r *record) {
	switch s := r.store; {
	case s == nil:
	case s.snapshot.Up == drain.UpNo:
		if s.exported && d.isOld(s) {
			d.drop(r)
		}
	default:
		if err := s.read(); err != nil {
			d.drop(r)
			d.refuse(r, r.info, err)
		}
	}
}

// drop stops reporting a store.
func (d *Directory) drop(r *record) {
	if r.store.snapshot.Up != drain.UpNo { // otherwise, it is closed
		_ = r.store.Close()
	}
	d.cfg.Stores.release(r.store.key)
	r.store = nil
	d.open.Add(-1)
}
