// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// hangsAfter is how long one operation on a directory may take before it is
// reported.
const hangsAfter = 10 * time.Second

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

	mail   *Mailbox
	busy   atomic.Int64 // since when it is at work, in Unix nanoseconds; 0 if it isn't
	cancel context.CancelFunc
	ended  chan struct{}
}

// New returns a Directory that sends what it finds. It calls send on its own
// goroutine. The configuration must be valid, see [CheckDirectories] and
// [CheckPatterns]. Nothing is opened before Start.
func New(cfg Config, send func(drain.Message), notices *notice.Reporter) (*Directory, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Directory{config: cfg, mail: NewMailbox(), ended: make(chan struct{})}
	d.tracker = newTracker(&d.config, send, notices, d)
	return d, nil
}

// Start begins to look for rings. It doesn't wait for the first walk.
func (d *Directory) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go d.run(ctx)
}

// Look walks the directory now, asks who has the rings open, and then calls done
// on the directory's goroutine. By then everything that it found was sent.
func (d *Directory) Look(done func()) {
	look := func() {
		d.tick()
		done()
	}
	if !d.mail.Put(look) {
		done()
	}
}

// Stop ends the search and closes the rings that were given back. It waits for
// that until ctx ends, as the directory may hang. Call it after the owner has
// given up its rings: those that it gives up later are closed without anybody
// waiting for that. It is safe to call twice, and before Start.
func (d *Directory) Stop(ctx context.Context) error {
	if d.cancel == nil {
		return nil
	}
	d.cancel()
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop watching %s: its file system doesn't answer: %w", d.cfg.Dir, ctx.Err())
	}
}

// State returns what the directory has found. It never blocks.
func (d *Directory) State() State {
	s := d.tracker.State()
	since := d.busy.Load()
	if busy := time.Duration(d.cfg.Now().UnixNano() - since); since != 0 && busy >= hangsAfter {
		s.Missing = errors.Join(s.Missing, fmt.Errorf("%s: file system hasn't answered for %v", d.cfg.Dir, busy.Round(time.Second)))
	}
	return s
}

// Close implements [drain.Source].
func (d *Directory) Close(r *ringbuf.Reader) { d.ask(r, func() { d.closed(r) }) }

// Reopen implements [drain.Source].
func (d *Directory) Reopen(a drain.Agent, r *ringbuf.Reader) { d.ask(r, func() { d.reopen(a, r) }) }

// Retire implements [drain.Source].
func (d *Directory) Retire(a drain.Agent, r *ringbuf.Reader) {
	if !d.mail.Put(func() { d.retire(a, r) }) {
		d.config.Rings.Leave(a.ID)
		go d.closeRing(r)
	}
}

// Reject implements [drain.Source].
func (d *Directory) Reject(a drain.Agent, r *ringbuf.Reader) { d.ask(r, func() { d.reject(a, r) }) }

// ask has something done about a ring. If nobody is left to do it, the ring is
// only closed.
func (d *Directory) ask(r *ringbuf.Reader, fn func()) {
	if !d.mail.Put(fn) {
		go d.closeRing(r)
	}
}

// run looks for rings until ctx ends.
func (d *Directory) run(ctx context.Context) {
	defer close(d.ended)
	watchdog := time.AfterFunc(hangsAfter, d.hangs)
	watchdog.Stop()
	walk, retry, resume := time.NewTimer(0), time.NewTimer(maxRetry), time.NewTimer(maxRetry)
	if !d.cfg.Discovered {
		d.openNotifier()
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-d.mail.Arrived():
			d.work(watchdog, d.answer)
		case <-walk.C:
			d.work(watchdog, d.tick)
			walk.Reset(d.cfg.WalkEvery)
		case <-retry.C:
			d.work(watchdog, d.wakeDue)
		case <-resume.C:
			d.listen()
		case e := <-d.events:
			d.work(watchdog, func() {
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
	d.work(watchdog, d.end)
	d.checking.Wait()
}

// work does something that may block.
func (d *Directory) work(watchdog *time.Timer, fn func()) {
	d.busy.Store(d.cfg.Now().UnixNano())
	watchdog.Reset(hangsAfter)
	fn()
	watchdog.Stop()
	d.busy.Store(0)
}

func (d *Directory) hangs() {
	d.notices.Report(notice.Notice{
		Kind: notice.DirectoryHangs, Level: slog.LevelError, Path: d.cfg.Dir,
		Text: fmt.Sprintf("file system hasn't answered for %v; until it does, no new rings and no restarts are found in this directory; check the file system", hangsAfter),
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
	for _, fn := range d.mail.Take(false) {
		fn()
	}
	if d.stopped && d.State().Open == 0 {
		d.cancel()
	}
}

// leave says that the directory is gone, with everything that had it open. It ends
// the search; the directory's goroutine ends once its rings are closed.
func (d *Directory) leave() {
	d.mail.Put(func() {
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
	for _, fn := range d.mail.Take(true) {
		fn()
	}
}
