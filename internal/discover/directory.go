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

	config    Config
	walks     uint64
	walked    time.Time // the last time
	cut       bool      // the last walk didn't come to the end
	inotify   *fsnotify.Watcher
	events    chan fsnotify.Event
	errors    chan error
	notifyOff bool // inotify doesn't work, and that was reported
	repeats   flood

	worker *Worker
}

// New returns a Directory that sends what it finds. It calls send on its own
// goroutine. The configuration must be valid, see [CheckDirectories] and
// [CheckPatterns]. Nothing is opened before Start.
func New(cfg Config, send func(drain.Message), notices *notice.Reporter) (*Directory, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Directory{config: cfg}
	d.worker = NewWorker(cfg.Now, d.hangs)
	d.tracker = newTracker(&d.config, send, notices, d)
	return d, nil
}

// Start begins to look for rings. It doesn't wait for the first walk.
func (d *Directory) Start() { d.worker.Start(d.run) }

// Look walks the directory now, asks who has the rings open, and then calls done
// on the directory's goroutine. By then everything that it found was sent.
func (d *Directory) Look(done func()) {
	look := func() {
		d.tick()
		done()
	}
	if !d.worker.Ask(look) {
		done()
	}
}

// Stop ends the search and closes the rings that were given back. It waits for
// that until ctx ends, as the directory may hang. Call it after the owner has
// given up its rings: those that it gives up later are closed without anybody
// waiting for that. It is safe to call twice, and before Start.
func (d *Directory) Stop(ctx context.Context) error {
	if err := d.worker.Stop(ctx); err != nil {
		return fmt.Errorf("stop watching %s: its file system doesn't answer: %w", d.cfg.Dir, err)
	}
	return nil
}

// State returns what the directory has found. It never blocks.
func (d *Directory) State() State {
	s := d.tracker.State()
	if hangs := d.worker.Hangs(); hangs > 0 {
		s.Missing = errors.Join(s.Missing, fmt.Errorf("%s: file system hasn't answered for %v", d.cfg.Dir, hangs))
	}
	return s
}

// Close implements [drain.Source].
func (d *Directory) Close(r *ringbuf.Reader) { d.ask(r, func() { d.closed(r) }) }

// Reopen implements [drain.Source].
func (d *Directory) Reopen(a drain.Agent, r *ringbuf.Reader) { d.ask(r, func() { d.reopen(a, r) }) }

// Retire implements [drain.Source].
func (d *Directory) Retire(a drain.Agent, r *ringbuf.Reader) {
	if !d.worker.Ask(func() { d.retire(a, r) }) {
		d.config.Rings.Leave(a.ID)
		go d.closeRing(r)
	}
}

// Reject implements [drain.Source].
func (d *Directory) Reject(a drain.Agent, r *ringbuf.Reader) { d.ask(r, func() { d.reject(a, r) }) }

// ask has something done about a ring. If nobody is left to do it, the ring is
// only closed.
func (d *Directory) ask(r *ringbuf.Reader, fn func()) {
	if !d.worker.Ask(fn) {
		go d.closeRing(r)
	}
}

// run looks for rings until ctx ends.
func (d *Directory) run(ctx context.Context) {
	walk, retry, resume := time.NewTimer(0), time.NewTimer(maxRetry), time.NewTimer(maxRetry)
	if !d.cfg.Discovered {
		d.openNotifier()
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-d.worker.Asked():
			d.worker.Do(d.answer)
		case <-walk.C:
			d.worker.Do(d.tick)
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
	d.checking.Wait()
}

func (d *Directory) hangs() {
	d.notices.Report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system hasn't answered for %v; until it does, no new rings and no restarts are found in this directory; check the file system", HangsAfter),
	})
}

func (d *Directory) tick() {
	if d.stopped {
		return
	}
	d.walk()
	d.attend()
	d.checkShared()
}

// answer does what was asked.
func (d *Directory) answer() {
	d.worker.Answer(false)
	if d.stopped && d.State().Open == 0 {
		d.worker.Cancel()
	}
}

// leave says that the directory is gone, with everything that had it open. It ends
// the search; the directory's goroutine ends once its rings are closed.
func (d *Directory) leave() {
	d.worker.Ask(func() {
		d.stopped = true
		for _, r := range d.records {
			if r.ring != nil {
				d.send(drain.Gone{ID: r.ID, Reader: r.ring})
			}
		}
	})
}

// end closes what the owner has given back, and opens nothing any more.
func (d *Directory) end() {
	d.stopped = true
	if d.inotify != nil {
		_ = d.inotify.Close()
	}
	d.worker.Answer(true)
}
