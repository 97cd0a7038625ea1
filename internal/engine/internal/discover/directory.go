// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/mailbox"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// Directory finds the rings and reads the stores in one directory. It is a [drain.Source]. Its
// goroutine makes all calls that may block.
type Directory struct {
	cfg     Config
	at      Location
	send    func(drain.Message)
	notices *notice.Reporter

	calls  *mailbox.Mailbox[func()] // what the goroutine is asked to do
	answer chan answer              // to the current offer; see offer
	ctx    context.Context          // of the search for rings and stores
	cancel context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended

	busy        atomic.Pointer[time.Time] // since when the goroutine has been using the file system; nil if it waits
	hangIsKnown *time.Time                // busy when a hang was reported last

	open  atomic.Int64  // open rings, and stores that are reported
	paths *atomic.Int64 // records of all directories of the holder; see maxFiles

	seek    func()  // asks for a search
	advised *advice // the directories of a discovery share it

	mu      sync.Mutex // guards the fields below; never held during a call that may block
	missing error
	refused map[string]Refusal

	// Only the directory's goroutine uses these:
	records map[string]*record // by path
	retryAt time.Time          // when the first refused path is tried again
	stopped bool               // the directory was removed: nothing is opened from now on
	done    bool               // the goroutine ends

	walks     uint64
	walked    files.Info            // the directory before the last walk; zero if it was missing
	walkDue   time.Time             // when the next walk is due in any case
	walkRest  time.Time             // no walk begins before that
	opened    *files.Dir            // nil unless cfg.Hold is set and it was found
	listed    time.Time             // when unchanged was cleared
	unchanged map[string]files.Info // directories that were listed; a new file would change them
	skipped   bool                  // the last walk has ignored files
	waited    time.Duration         // for the owner, since the last walk began
}

// advice is what is reported once.
type advice struct {
	patterns atomic.Bool // the patterns have selected a file, or it was reported that they don't
	identity atomic.Bool // it was reported that a part of identify_by isn't known
}

// newDirectory returns a Directory. It passes messages to send. Nothing is opened before run.
func newDirectory(cfg Config, at Location, send func(drain.Message), notices *notice.Reporter) *Directory {
	d := &Directory{
		cfg: cfg, at: at, send: send, notices: notices, paths: new(atomic.Int64), seek: func() {}, advised: new(advice),
		calls: mailbox.New[func()](), answer: make(chan answer, 1), ended: make(chan struct{}),
		refused: make(map[string]Refusal), records: make(map[string]*record), unchanged: make(map[string]files.Info),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// request runs fn and then done on the directory's goroutine, or only done if that has ended.
func (d *Directory) request(fn, done func()) {
	if !d.calls.Put(func() { fn(); done() }) {
		done()
	}
}

// readStores reads all stores, passes their snapshots to add, and then calls done. While the
// directory hangs, it only calls done.
func (d *Directory) readStores(add func([]drain.Snapshot), done func()) {
	if d.cfg.Stores == nil || d.open.Load() == 0 || d.hungFor() > 0 {
		done()
		return
	}
	d.request(func() { add(d.readAll()) }, done)
}

// stop cancels the search and closes the rings that the owner has returned. Because
// the file system may hang, it waits only until ctx ends. Rings that the owner returns later are
// closed in the background.
func (d *Directory) stop(ctx context.Context) error {
	d.cancel()
	d.calls.Put(func() { d.done = true })
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop watching %s: file system is not responding: %w", d.at.Path, ctx.Err())
	}
}

// hasEnded reports whether the goroutine has ended.
func (d *Directory) hasEnded() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// state returns the state of the directory. It never blocks.
func (d *Directory) state() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := State{Open: int(d.open.Load()), Refused: maps.Clone(d.refused)}
	if d.missing != nil {
		s.Missing = append(s.Missing, d.missing)
	}
	if hung := d.hungFor(); hung > 0 {
		s.Missing = append(s.Missing, fmt.Errorf("%s: file system has not responded for %v", d.at.Path, hung))
	}
	return s
}

const (
	// pollInterval is the interval at which a directory is polled. A process may wake up for
	// all directories at the same time, because waking up costs more than a poll.
	pollInterval = 250 * time.Millisecond
	// usedInterval is that of a directory whose rings and stores are all known to be in use.
	usedInterval = time.Second
	// ProbeInterval is the interval at which a directory is walked and its rings are
	// probed. A directory that has changed is walked sooner.
	ProbeInterval = 2 * time.Second
	// maxWalking limits the share of the time that is spent on walks of a directory that
	// changes all the time: one part in maxWalking.
	maxWalking = 16
	// hangTimeout is the time after which a file system that doesn't respond, or an agent that isn't ready,
	// is reported.
	hangTimeout = 10 * time.Second
)

// run is the directory's goroutine.
func (d *Directory) run() {
	defer close(d.ended)
	look := time.NewTimer(0)
	defer look.Stop()
	for !d.done && (!d.stopped || d.open.Load() > 0) { // what is open in a removed directory may still be in use
		select {
		case <-d.calls.Arrived():
			d.do(d.runCalls)
		case <-look.C:
			d.do(d.poll)
			every := d.pollEvery()
			look.Reset(every - time.Duration(time.Now().UnixNano())%every)
		}
	}
	d.do(d.end)
}

// pollEvery returns the interval at which the directory is polled now.
func (d *Directory) pollEvery() time.Duration {
	if d.allInUse() {
		return usedInterval
	}
	return pollInterval
}

// do runs a function that may block.
func (d *Directory) do(fn func()) {
	now := d.cfg.Now()
	d.busy.Store(&now)
	fn()
	d.busy.Store(nil)
}

// hungFor returns how long the current call of do has taken, or 0 if that is less than hangTimeout.
func (d *Directory) hungFor() time.Duration {
	if since := d.busy.Load(); since != nil && d.cfg.Now().Sub(*since) >= hangTimeout {
		return d.cfg.Now().Sub(*since).Round(time.Second)
	}
	return 0
}

// checkHang reports once that the directory hangs. Only one goroutine may call it.
func (d *Directory) checkHang() {
	since := d.busy.Load()
	if since == d.hangIsKnown || d.hungFor() == 0 {
		return
	}
	d.hangIsKnown = since
	d.report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.at.Path,
		Text: fmt.Sprintf("file system has not responded for %v; new rings and restarts in this directory are not discovered until it does; check the file system", hangTimeout),
	})
}

// poll walks the directory if it has changed, or if a walk is due. The kernel updates the
// time of a directory when a file is created, renamed or removed.
func (d *Directory) poll() {
	now := d.cfg.Now()
	retry := !d.retryAt.IsZero() && !now.Before(d.retryAt)
	switch {
	case now.Before(d.walkRest), d.ctx.Err() != nil:
	case !now.Before(d.walkDue), !d.stopped && (retry || d.describe() != d.walked):
		d.refresh()
	}
}

// describe describes the directory; the result is zero if it doesn't exist.
func (d *Directory) describe() (info files.Info) {
	if d.opened != nil {
		info, _ = d.opened.Stat()
	} else if !d.cfg.Hold {
		info, _ = files.Stat(d.at.Path)
	}
	return info
}

// refresh walks the directory, and probes the rings and the stores. The time of the next walk varies,
// because many directories may be discovered at once.
func (d *Directory) refresh() {
	began := d.cfg.Now()
	d.waited = 0
	if !d.stopped {
		d.walk()
	}
	d.probeAll() // of a stopped directory, a process may still have a ring or store open
	now := d.cfg.Now()
	d.walkDue = now.Add(ProbeInterval - rand.N(ProbeInterval/8)) //nolint:gosec // not for security
	d.walkRest = now.Add(maxWalking * (now.Sub(began) - d.waited))
}

// runCalls does what the owner and the engine have asked for.
func (d *Directory) runCalls() {
	for _, fn := range d.calls.Take(nil) {
		fn()
	}
}

// abandon stops the search because the directory was removed together with every
// process that had it open.
func (d *Directory) abandon() {
	d.calls.Put(func() {
		d.stopped = true
		d.release()
		for _, r := range d.records {
			if r.up = drain.UpUnknown; r.ring != nil {
				d.send(drain.Gone{ID: r.ID, Reader: r.ring})
			} else if r.store == nil {
				d.setState(r, absent)
			}
		}
		d.sweep(false)
		d.setRefusal(d.at.Path, nil)
		d.attribute() // no search will find more
		d.probeAll()
	})
}

// end closes the stores, and the rings that the owner has returned. Nothing is opened afterwards.
func (d *Directory) end() {
	d.stopped = true
	d.cancel()
	d.release()
	for _, fn := range d.calls.Close() {
		fn()
	}
	for _, r := range d.records {
		if r.store != nil {
			d.drop(r)
		}
	}
	d.paths.Add(-int64(len(d.records)))
	clear(d.records)
}
