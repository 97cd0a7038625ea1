// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// record describes one file with the name of a store.
type record struct {
	agent   *agent // owner of the store; nil if it isn't read
	done    bool   // the store is open, counted or excluded; it isn't checked again
	walk    uint64 // the last walk that found the file
	claimed bool   // id is claimed in Rings, so that no other directory reads the file
	id      ringbuf.FileID

	// While the file is refused:
	info  ringbuf.FileInfo
	tried time.Time
	cause string // reported last
}

// retryAfter is the time after which an unchanged refused file is tried again.
const retryAfter = 30 * time.Second

var errLimit = errors.New("the limit on the number of rings and stores is reached; raise max_rings, or remove stores of processes that have exited")

// reason returns the value of the metric attribute reason for an error.
func reason(err error) string {
	var owner *ringbuf.OwnerError
	switch {
	case errors.As(err, &owner):
		return "owner"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, ErrVersion):
		return "version"
	case errors.Is(err, ErrInvalid), errors.Is(err, ringbuf.ErrNotRegular):
		return "invalid"
	case errors.Is(err, errLimit):
		return "limit"
	default:
		return "error"
	}
}

// check opens the store at a name in an open directory, unless its record is done.
func (d *Directory) check(f *ringbuf.Dir, name string, parsed fileName) {
	r := d.records[name]
	if r == nil {
		r = &record{}
		d.records[name] = r
	}
	r.walk = d.walks
	if r.done {
		return
	}
	info, err := f.Lstat(name)
	if err == nil && r.info.Same(info) && d.cfg.Now().Before(r.tried.Add(retryAfter)) {
		return
	}
	if err == nil && !r.claimed {
		if r.id, r.claimed = info.ID, d.cfg.Rings.Claim(info.ID, d.path(name)); !r.claimed {
			return // the file is read under another path
		}
	}
	if err == nil {
		err = d.addStore(f, r, name, parsed)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the file was just removed
	case err != nil:
		d.refuse(name, info, err)
	default:
		r.done = true
		d.setRefusal(name, nil)
	}
}

// addStore opens a store, reads it, and adds it to its agent.
func (d *Directory) addStore(f *ringbuf.Dir, r *record, name string, parsed fileName) error {
	file, err := f.OpenFile(name, ringbuf.OwnedBy(d.cfg.AllowedUIDs...))
	if err != nil {
		return err
	}
	p, err := d.openStore(file, name, parsed)
	if err != nil || !d.matches(p.agent) {
		return errors.Join(err, file.Close())
	}
	id := agentID(d.cfg.Scope, p.host, p.agent)
	a := d.agents[id]
	if (a == nil || a.open() > 0) && d.cfg.Rings.Full() {
		return errors.Join(errLimit, file.Close())
	}
	d.cfg.Rings.Add(d.path(name))
	d.cfg.Rings.Remove(id)
	d.countOpen(1)
	d.report(name, info(notice.MPStoreOpened, fmt.Sprintf("store opened (agent %q, process %d)", p.agent, p.pid)))
	switch {
	case a == nil:
		d.newAgent(id, p)
		a = d.agents[id] // nil if the store is stale
	case a.loading:
		a.processes = append(a.processes, p)
	default:
		d.addUnlessStale(a, p)
	}
	r.agent = a
	return nil
}

// openStore checks and reads a store.
func (d *Directory) openStore(file *os.File, name string, parsed fileName) (*process, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != int64(size) {
		return nil, fmt.Errorf("%w: file has %d bytes, expected %d", ErrInvalid, info.Size(), size)
	}
	p := &process{file: name, path: d.path(name), open: file, start: time.Unix(0, parsed.marker)}
	if now := d.cfg.Now(); p.start.After(now) {
		p.start = now
	}
	p.probe()
	if err := d.readAt(file, 0, size); err != nil {
		return nil, err
	}
	if p.header, err = parseHeader(d.bytes[:], parsed); err != nil {
		return nil, err
	}
	if p.shape, err = d.shapeFor(p.bounds); err != nil {
		return nil, err
	}
	update(&p.values, d.bytes[:], len(p.bounds))
	return p, nil
}

// shapeFor returns the shape of the totals of a store. Stores with the same bounds share
// their shape, unless one with other bounds was opened in between.
func (d *Directory) shapeFor(bounds []float64) (*tally.Shape, error) {
	if d.shape == nil || !slices.Equal(bounds, d.bounds) {
		shape, err := newShape(bounds, d.cfg.Histograms)
		if err != nil {
			return nil, err
		}
		d.shape, d.bounds = shape, bounds
	}
	return d.shape, nil
}

// readAt reads a part of an open store. Unlike mapped memory, a truncated file causes an
// error instead of a crash.
func (d *Directory) readAt(file *os.File, from, to int) error {
	_, err := file.ReadAt(d.bytes[from:to], int64(from))
	if errors.Is(err, io.EOF) {
		return errShrunk
	}
	return err
}

// refuse records and reports that a file can't be read as a store.
func (d *Directory) refuse(name string, info ringbuf.FileInfo, err error) {
	n := warn(notice.MPStoreRefused, "store can't be read, so its process isn't counted; retrying", err)
	switch {
	case errors.Is(err, errLimit):
		n.Kind, n.Level = notice.MPStoreLimit, slog.LevelError
		info = ringbuf.FileInfo{} // the next walk tries again
	case errors.Is(err, fs.ErrPermission):
		n.Text += "; stores have mode 0600, so run as the agents' user, or with CAP_DAC_READ_SEARCH"
	}
	r := d.records[name]
	if r == nil { // the file was removed
		d.report(name, n)
		return
	}
	r.done, r.info, r.tried = false, info, d.cfg.Now()
	d.setRefusal(name, &discover.Refusal{Reason: reason(err), Err: err})
	if r.cause != err.Error() {
		r.cause = err.Error()
		d.report(name, n)
	}
}

func (d *Directory) setRefusal(name string, refusal *discover.Refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if refusal == nil {
		delete(d.refused, d.path(name))
	} else {
		d.refused[d.path(name)] = *refusal
	}
}

// countOpen adds n to the number of open stores.
func (d *Directory) countOpen(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stores += n
}

func (d *Directory) path(file string) string { return filepath.Join(d.cfg.Dir, file) }

// report reports a notice about a file.
func (d *Directory) report(file string, n notice.Notice) {
	n.Path = d.path(file)
	d.notices.Report(n)
}

// forget deletes the record of a file.
func (d *Directory) forget(name string, r *record) {
	delete(d.records, name)
	if r.claimed {
		d.cfg.Rings.Release(r.id)
	}
}
