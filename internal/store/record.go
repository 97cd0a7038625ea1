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
	"time"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// record is what is known about one file with the name of a store.
type record struct {
	agent   *agent // that the store belongs to; nil if it isn't read
	settled bool   // the store is open, counted or unwanted: it isn't looked at any more
	walk    uint64 // the last walk that came across the file
	claimed bool   // no other directory reads the file
	id      ringbuf.FileID

	// While the file is refused:
	info  ringbuf.FileInfo
	tried time.Time
	cause string // reported last
}

// retryAfter is when a file that is refused is tried again if it doesn't change.
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
	case errors.Is(err, errVersion):
		return "version"
	case errors.Is(err, errInvalid), errors.Is(err, ringbuf.ErrNotRegular):
		return "invalid"
	case errors.Is(err, errLimit):
		return "limit"
	default:
		return "error"
	}
}

// look opens the store of a name in an open folder, unless that was done.
func (d *Directory) look(f *ringbuf.Folder, name string, says fileName) {
	r := d.records[name]
	if r == nil {
		r = &record{}
		d.records[name] = r
	}
	r.walk = d.walks
	if r.settled {
		return
	}
	info, err := f.Lstat(name)
	if err == nil && r.info.Same(info) && d.cfg.Now().Before(r.tried.Add(retryAfter)) {
		return
	}
	if err == nil && !r.claimed {
		if r.id, r.claimed = info.ID, d.cfg.Rings.Claim(info.ID, d.path(name)); !r.claimed {
			return // it is read under another path
		}
	}
	if err == nil {
		err = d.find(f, r, name, says)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was removed just now
	case err != nil:
		d.refuse(name, info, err)
	default:
		r.settled = true
		d.setRefusal(name, nil)
	}
}

// find opens a store, reads it, and gives it to its agent.
func (d *Directory) find(f *ringbuf.Folder, r *record, name string, says fileName) error {
	file, err := f.OpenFile(name, ringbuf.OwnedBy(d.cfg.AllowedUIDs...))
	if err != nil {
		return err
	}
	p, err := d.open(file, name, says)
	if err != nil || !d.wants(p.agent) {
		return errors.Join(err, file.Close())
	}
	id := agentID(d.cfg.Scope, p.host, p.agent)
	a := d.agents[id]
	if (a == nil || a.open() > 0) && d.cfg.Rings.Full() {
		return errors.Join(errLimit, file.Close())
	}
	d.cfg.Rings.Admit(d.path(name))
	d.cfg.Rings.Leave(id)
	d.opened()
	d.report(name, info(notice.MPStoreOpened, fmt.Sprintf("store opened (agent %q, process %d)", p.agent, p.pid)))
	switch {
	case a == nil:
		d.newAgent(id, p)
		a = d.agents[id] // nil if it isn't worth reporting
	case a.loading:
		a.processes = append(a.processes, p)
	default:
		d.admit(a, p)
	}
	r.agent = a
	return nil
}

// open checks and reads a store.
func (d *Directory) open(file *os.File, name string, says fileName) (*process, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != int64(size) {
		return nil, fmt.Errorf("%w: the file has %d bytes, not %d", errInvalid, info.Size(), size)
	}
	p := &process{file: name, path: d.path(name), open: file}
	p.probe()
	if err := d.load(file, 0, size); err != nil {
		return nil, err
	}
	if p.header, err = parseHeader(d.bytes[:], says); err != nil {
		return nil, err
	}
	if p.shape, err = p.header.shape(d.cfg.Histograms); err != nil {
		return nil, err
	}
	parseValues(d.bytes[:], len(p.bounds), &p.values)
	return p, nil
}

// load reads a part of an open store. Unlike mapped memory, a file that shrinks or
// hangs can't harm the process.
func (d *Directory) load(file *os.File, from, to int) error {
	_, err := file.ReadAt(d.bytes[from:to], int64(from))
	if errors.Is(err, io.EOF) {
		return errShrunk
	}
	return err
}

// refuse notes that a file can't be read as a store.
func (d *Directory) refuse(name string, info ringbuf.FileInfo, err error) {
	n := warn(notice.MPStoreRefused, "store can't be read, so its process isn't counted; retrying", err)
	switch {
	case errors.Is(err, errLimit):
		n.Kind, n.Level = notice.MPStoreLimit, slog.LevelError
		info = ringbuf.FileInfo{} // to be tried again by the next walk
	case errors.Is(err, fs.ErrPermission):
		n.Text += "; stores have mode 0600, so run as the user of the agents, or with CAP_DAC_READ_SEARCH"
	}
	r := d.records[name]
	if r == nil { // the file was removed
		d.report(name, n)
		return
	}
	r.settled, r.info, r.tried = false, info, d.cfg.Now()
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

// opened and closed count the stores that are open.
func (d *Directory) opened() { d.countOpen(1) }
func (d *Directory) closed() { d.countOpen(-1) }

func (d *Directory) countOpen(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stores += n
}

func (d *Directory) path(file string) string { return filepath.Join(d.cfg.Dir, file) }

// report passes on a notice about a file.
func (d *Directory) report(file string, n notice.Notice) {
	n.Path = d.path(file)
	d.notices.Report(n)
}

// forget forgets a file.
func (d *Directory) forget(name string, r *record) {
	delete(d.records, name)
	if r.claimed {
		d.cfg.Rings.Release(r.id)
	}
}
