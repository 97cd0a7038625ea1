// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/mailbox"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Directory finds the rings and reads the stores in one directory. It is a [drain.Source].
type Directory struct {
	tracker

	stores  *stores // nil if stores are ignored
	reading atomic.Bool

	walks     uint64
	seen      int  // files that the last walk found
	included  int  // files of these that include selects
	unmatched bool // it was reported that include selects none
	skipped   bool // the current walk has ignored files
	truncated bool // the last walk had

	dir      *files.Dir // the open directory; nil unless cfg.Hold is set and it was found
	openedAt time.Time  // when it was opened
	walked   files.Info // the directory before the last walk; zero if it was missing
	walkDue  time.Time  // when the next walk is due in any case
	walkRest time.Time  // no walk begins before that

	worker  *Worker
	answers *mailbox.Mailbox[func()] // of the owner
	cancel  context.CancelFunc       // of ctx
}

// New returns a Directory. It passes messages to send, on the directory's goroutine.
// The configuration must be valid; see [CheckDirectories] and [CheckPatterns].
// Nothing is opened before Start.
func New(cfg Config, send func(drain.Message), notices *notice.Reporter) (*Directory, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Directory{answers: mailbox.New[func()]()}
	d.worker = NewWorker(cfg.Now, d.reportHang)
	d.tracker = newTracker(cfg, send, notices, d)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if cfg.Stores != nil {
		d.stores = newStores(&d.tracker, *cfg.Stores)
	}
	return d, nil
}

// Start starts the search for rings. It doesn't wait for the first walk.
func (d *Directory) Start() { d.worker.Start(d.run) }

// Cancel cancels the search for rings, for good. Open rings and stores stay open.
func (d *Directory) Cancel() { d.cancel() }

// Refresh walks the directory, probes the rings and stores, and then calls done on the
// directory's goroutine. All messages about what it finds are sent before that.
func (d *Directory) Refresh(done func()) { d.call(d.refresh, done) }

// Attribute sends what the last search has found about agents, and then calls done on the
// directory's goroutine.
func (d *Directory) Attribute(done func()) { d.call(d.attribute, done) }

// call calls fn and done on the directory's goroutine, or only done if that has ended.
func (d *Directory) call(fn, done func()) {
	if !d.worker.Submit(func() { fn(); done() }) {
		done()
	}
}

// Stores reads all stores, passes their snapshots to add, and then calls done. If an earlier call
// hasn't ended, because the file system hangs, it calls only done.
func (d *Directory) Stores(add func([]drain.Snapshot), done func()) {
	if d.stores == nil || d.stores.open.Load() == 0 || d.reading.Swap(true) {
		done()
		return
	}
	submitted := d.worker.Submit(func() {
		add(d.stores.readAll())
		d.reading.Store(false)
		done()
	})
	if !submitted {
		done()
	}
}

// Stop stops the search and closes the rings that the owner has returned. Because
// the file system may hang, it waits only until ctx ends. Call Stop after the owner
// has returned its rings: rings returned later are closed in the background. Stop
// may be called more than once, and before Start.
func (d *Directory) Stop(ctx context.Context) error {
	if err := d.worker.Stop(ctx); err != nil {
		return fmt.Errorf("stop watching %s: file system is not responding: %w", d.cfg.Dir, err)
	}
	return nil
}

// State returns the state of the directory. It never blocks.
func (d *Directory) State() State {
	s := d.tracker.State()
	if hung := d.worker.HungFor(); hung > 0 {
		s.Missing = errors.Join(s.Missing, fmt.Errorf("%s: file system has not responded for %v", d.cfg.Dir, hung))
	}
	return s
}

// Close implements [drain.Source].
func (d *Directory) Close(r *ringbuf.Reader) {
	if r != nil {
		d.submit(r, func() { d.returned(r.Path(), r, d.cfg.CloseExited) })
	}
}

// Reopen implements [drain.Source].
func (d *Directory) Reopen(a drain.Agent, r *ringbuf.Reader) { d.submit(r, func() { d.reopen(a, r) }) }

// Retire implements [drain.Source].
func (d *Directory) Retire(a drain.Agent, r *ringbuf.Reader) {
	d.submit(r, func() { d.returned(a.Path, r, true) })
}

// Answer implements [drain.Source].
func (d *Directory) Answer(a drain.Agent, r *ringbuf.Reader, refused error) {
	d.submit(r, func() { d.answered(a, r, refused) })
}

// submit runs fn on the directory's goroutine. If that has ended, it only closes
// the ring.
func (d *Directory) submit(r *ringbuf.Reader, fn func()) {
	if !d.answers.Put(fn) {
		go d.closeRing(r)
	}
}

// lookInterval is the interval at which a directory is looked at. A process may wake up for
// all directories at the same time, because waking up costs more than a look.
const lookInterval = 250 * time.Millisecond

// reopenInterval is the interval at which a directory that is held is opened again, because
// another one may have replaced it.
const reopenInterval = 10 * time.Second

// maxWalking limits the share of the time that is spent on walks of a directory that
// changes all the time: one part in maxWalking.
const maxWalking = 16

// run is the directory's goroutine.
func (d *Directory) run(ctx context.Context) {
	defer context.AfterFunc(ctx, d.cancel)()
	look := time.NewTimer(0)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.answers.Arrived():
			d.worker.Do(d.runSubmitted)
		case <-d.worker.Submitted():
			d.worker.Do(d.runSubmitted)
		case <-look.C:
			look.Reset(lookInterval - time.Duration(time.Now().UnixNano())%lookInterval)
			d.worker.Do(d.look)
		}
	}
	d.cancel()
	d.worker.Do(d.end)
}

// look walks the directory if it has changed, or if a walk is due. The kernel updates the
// time of a directory when a file is created, renamed or removed. If that happens just after
// a walk, the time may stay the same, so only the next walk that is due finds it.
func (d *Directory) look() {
	d.attribute()
	switch now := d.cfg.Now(); {
	case now.Before(d.walkRest):
	case !now.Before(d.walkDue), !d.stopped && (d.mayRetry(now) || d.describe() != d.walked):
		d.refresh()
	}
}

// mayRetry reports whether a refused path is to be tried again.
func (d *Directory) mayRetry(now time.Time) bool {
	return !d.retryAt.IsZero() && !now.Before(d.retryAt)
}

// describe describes the directory; the result is zero if it doesn't exist.
func (d *Directory) describe() (info files.Info) {
	if d.dir != nil {
		info, _ = d.dir.Stat()
	} else if !d.cfg.Hold {
		info, _ = files.Stat(d.cfg.Dir)
	}
	return info
}

func (d *Directory) reportHang() {
	d.report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system has not responded for %v; new rings and restarts in this directory are not discovered until it does; check the file system", HangTimeout),
	})
}

// refresh does the periodic work. Many directories may be discovered at once, so the time of
// the next walk varies.
func (d *Directory) refresh() {
	began := d.cfg.Now()
	defer func() {
		now := d.cfg.Now()
		d.walkDue = now.Add(d.cfg.WalkEvery - rand.N(d.cfg.WalkEvery/8)) //nolint:gosec // not for security
		d.walkRest = now.Add(maxWalking * now.Sub(began))
	}()
	if !d.stopped {
		d.walk()
	}
	d.probeAll() // of a stopped directory, a process may still have a ring or store open
	d.probeStores()
}

// probeStores looks for processes with a store that have exited.
func (d *Directory) probeStores() {
	if d.stores == nil {
		return
	}
	d.stores.refresh()
	if d.stopped && d.State().Open == 0 {
		d.worker.Cancel()
	}
}

// runAnswers runs what the owner has submitted.
func (d *Directory) runAnswers() {
	for _, fn := range d.answers.Take(nil) {
		fn()
	}
}

// awaitAnswers waits until another ring may be offered to the owner.
func (d *Directory) awaitAnswers() {
	for len(d.offered) >= maxOffered && d.ctx.Err() == nil {
		select {
		case <-d.ctx.Done():
		case <-d.answers.Arrived():
			d.runAnswers()
		}
	}
}

// runSubmitted runs the submitted functions. An abandoned directory ends once its
// rings are closed.
func (d *Directory) runSubmitted() {
	d.runAnswers()
	d.worker.RunSubmitted(false)
	if d.stopped && d.State().Open == 0 {
		d.worker.Cancel()
	}
}

// abandon stops the search because the directory was removed together with every
// process that had it open. The directory's goroutine ends once its rings are closed.
func (d *Directory) abandon() {
	d.worker.Submit(func() {
		d.stopped = true
		d.release()
		for _, r := range d.records {
			if r.ring != nil {
				d.send(drain.Gone{ID: r.ID, Reader: r.ring})
			}
		}
		d.attribute() // no search will find more
		d.probeStores()
	})
}

// end closes the rings that the owner has returned. Nothing is opened afterwards.
func (d *Directory) end() {
	d.stopped = true
	d.release()
	for _, fn := range d.answers.Close() {
		fn()
	}
	d.worker.RunSubmitted(true)
	clear(d.records)
	if d.stores != nil {
		d.stores.end()
	}
}
