package drain

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// loop runs an owner on a goroutine of its own.
type loop struct {
	dir   string // of the first of its rings; empty if they are on local file systems
	owner *owner
	mail  *mailbox
	group *Group
	ended chan struct{}

	// busy is when the current step began, in nanoseconds since started, and 0
	// between steps. A page that doesn't arrive blocks a step for ever.
	busy    atomic.Int64
	started time.Time
	hung    atomic.Bool // that was reported
}

func (g *Group) startLoop(dir string) *loop {
	l := &loop{dir: dir, owner: newOwner(&g.cfg.Config, g.cfg.Saver != nil), mail: newMailbox(), group: g, ended: make(chan struct{}), started: g.cfg.Now()}
	go l.run()
	return l
}

func (l *loop) run() {
	defer close(l.ended)
	var memory []Message
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := l.group.cfg.Now()
	for {
		select {
		case <-l.mail.arrived:
		case <-timer.C:
		}
		messages := l.mail.take(memory)
		now := l.group.cfg.Now()
		if len(messages) == 0 {
			l.group.cfg.observeLag(now.Sub(next))
		}
		l.busy.Store(max(int64(now.Sub(l.started)), 1))
		counted := l.owner.counted
		at, effects := l.owner.step(now, messages)
		l.busy.Store(0)
		l.hung.Store(false)
		next = at
		l.group.cfg.observeEvents(l.owner.counted - counted)
		for _, e := range effects {
			e.run(l)
		}
		if l.owner.stopped {
			return
		}
		clear(messages)
		memory = messages
		timer.Reset(max(next.Sub(l.group.cfg.Now()), 0))
	}
}

// hungAfter is how long a step may take before others go on without the loop.
const hungAfter = time.Second

// hangs reports whether the loop is stuck in a step.
func (l *loop) hangs(now time.Time) bool {
	began := l.busy.Load()
	return began != 0 && now.Sub(l.started)-time.Duration(began) >= hungAfter
}

// wait waits until the loop has ended, or hangs, or ctx ends.
func (l *loop) wait(ctx context.Context) error {
	check := time.NewTicker(hungAfter / 10)
	defer check.Stop()
	for {
		select {
		case <-l.ended:
			return nil
		default:
		}
		if l.hangs(l.group.cfg.Now()) {
			return fmt.Errorf("stop draining rings on %s: reading a ring has blocked for %v", l.where(), hungAfter)
		}
		select {
		case <-l.ended:
		case <-check.C:
		case <-ctx.Done():
			return fmt.Errorf("stop draining rings on %s: %w", l.where(), ctx.Err())
		}
	}
}

// where names the loop's file systems.
func (l *loop) where() string {
	if l.dir == "" {
		return "local file systems"
	}
	return "the file system of " + l.dir
}

// reportHung reports once that the loop hangs.
func (l *loop) reportHung() {
	if l.hung.Swap(true) {
		return
	}
	l.report(notice.Notice{
		Kind: notice.FileSystemHangs, Level: slog.LevelError, Path: l.dir,
		Text: fmt.Sprintf("reading a ring has blocked for %v, so the agents on %s are neither drained nor reported; "+
			"check the file system (FUSE, NFS, a failing disk)", hungAfter, l.where()),
	})
}

// A loop carries out the effects of its owner. None of this blocks.

func (l *loop) load(path, key string) {
	l.group.cfg.Saver.Load(key, func(value []byte, err error) {
		l.mail.put(loaded{path: path, value: value, err: err})
	})
}

func (l *loop) save(b *batch, ops []checkpoint.Op) {
	l.group.cfg.Saver.Save(ops, func(err error) { l.mail.put(saved{batch: b, err: err}) })
}

func (l *loop) forget(key string) { l.group.cfg.Saver.Forget(key) }

func (l *loop) reply(c *collect) { c.done(collected{number: c.number, snapshots: c.snapshots}) }

func (l *loop) report(n notice.Notice) { l.group.cfg.Report(n) }
