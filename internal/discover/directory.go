// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Directory finds the rings in one directory. It is a [drain.Source].
type Directory struct {
	tracker

	walks     uint64
	lastWalk  time.Time
	truncated bool // the last walk reached its limit
	inotify   *fsnotify.Watcher
	events    chan fsnotify.Event
	errors    chan error
	notifyOff bool // inotify doesn't work, and that was reported
	limiter   eventLimiter

	worker *Worker
}

// New returns a Directory. It passes messages to send, on the directory's goroutine.
// The configuration must be valid; see [CheckDirectories] and [CheckPatterns].
// Nothing is opened before Start.
func New(cfg Config, send func(drain.Message), notices *notice.Reporter) (*Directory, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Directory{}
	d.worker = NewWorker(cfg.Now, d.reportHang)
	d.tracker = newTracker(cfg, send, notices, d)
	return d, nil
}

// Start starts the search for rings. It doesn't wait for the first walk.
func (d *Directory) Start() { d.worker.Start(d.run) }

// Refresh walks the directory, probes the rings, and then calls done on the
// directory's goroutine. All messages about what it finds are sent before that.
func (d *Directory) Refresh(done func()) {
	submitted := d.worker.Submit(func() {
		d.refresh()
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
func (d *Directory) Close(r *ringbuf.Reader) { d.submit(r, func() { d.closed(r) }) }

// Reopen implements [drain.Source].
func (d *Directory) Reopen(a drain.Agent, r *ringbuf.Reader) { d.submit(r, func() { d.reopen(a, r) }) }

// Retire implements [drain.Source].
func (d *Directory) Retire(a drain.Agent, r *ringbuf.Reader) {
	if !d.worker.Submit(func() { d.retire(a, r) }) {
		d.cfg.Rings.Remove(a.ID)
		go d.closeRing(r)
	}
}

// Refuse implements [drain.Source].
func (d *Directory) Refuse(a drain.Agent, r *ringbuf.Reader) {
	d.submit(r, func() { d.refuseRing(a, r) })
}

// submit runs fn on the directory's goroutine. If that has ended, it only closes
// the ring.
func (d *Directory) submit(r *ringbuf.Reader, fn func()) {
	if !d.worker.Submit(fn) {
		go d.closeRing(r)
	}
}

// run is the directory's goroutine.
func (d *Directory) run(ctx context.Context) {
	walk, retry, resume := time.NewTimer(0), time.NewTimer(maxRetry), time.NewTimer(maxRetry)
	if !d.cfg.Discovered {
		d.openNotifier()
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-d.worker.Submitted():
			d.worker.Do(d.runSubmitted)
		case <-walk.C:
			d.worker.Do(d.refresh)
			walk.Reset(d.cfg.WalkEvery)
		case <-retry.C:
			d.worker.Do(d.wakeDue)
		case <-resume.C:
			d.listen()
		case e := <-d.events:
			d.worker.Do(func() {
				if pause := d.event(e); pause > 0 {
					d.events = nil
					resume.Reset(pause)
				}
			})
		case err := <-d.errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				walk.Reset(d.untilWalk())
			} else {
				d.notifyFailed(err)
			}
		}
		retry.Reset(d.untilDue())
	}
	d.worker.Do(d.end)
	d.sharedCheck.Wait()
}

func (d *Directory) reportHang() {
	d.notices.Report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system has not responded for %v; new rings and restarts in this directory are not discovered until it does; check the file system", HangTimeout),
	})
}

// refresh does the periodic work.
func (d *Directory) refresh() {
	if d.stopped { // a process may still have a ring open
		d.probeAll()
		return
	}
	d.walk()
	d.probeAll()
	d.checkShared()
}

// runSubmitted runs the submitted functions. An abandoned directory ends once its
// rings are closed.
func (d *Directory) runSubmitted() {
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
		for _, r := range d.records {
			if r.ring != nil {
				d.send(drain.Gone{ID: r.ID, Reader: r.ring})
			}
		}
	})
}

// end closes the rings that the owner has returned. Nothing is opened afterwards.
func (d *Directory) end() {
	d.stopped = true
	if d.inotify != nil {
		_ = d.inotify.Close()
	}
	d.worker.RunSubmitted(true)
}
