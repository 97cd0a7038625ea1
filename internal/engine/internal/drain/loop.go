// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/mailbox"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// LoopConfig configures a [Loop].
type LoopConfig struct {
	Config
	Storage Storage             // nil to commit events without storing totals; an observer needs none
	Report  func(notice.Notice) // must not block
	Now     func() time.Time

	ObserveLag    func(time.Duration)                 // receives how late a round of drains began; may be nil
	ObserveEvents func(uint64)                        // receives the number of events of a round; may be nil
	ObserveSave   func(took time.Duration, err error) // receives the duration and the error of a save; may be nil
}

// Where totals are stored.
type (
	// Storage stores checkpoints.
	Storage = checkpoint.Storage
	// Op is an operation of a [Storage].
	Op = checkpoint.Op
)

func (c *LoopConfig) observeLag(lag time.Duration) {
	if c.ObserveLag != nil {
		c.ObserveLag(max(lag, 0))
	}
}

func (c *LoopConfig) observeSave(took time.Duration, err error) {
	if c.ObserveSave != nil {
		c.ObserveSave(took, err)
	}
}

func (c *LoopConfig) observeEvents(n uint64) {
	if c.ObserveEvents != nil && n > 0 {
		c.ObserveEvents(n)
	}
}

// Loop runs an owner on its own goroutine, and a saver with storage. Its methods are safe for concurrent use. None
// of them waits for a step that hangs, for example because of a failing disk.
type Loop struct {
	cfg   LoopConfig
	owner *owner
	saver *checkpoint.Saver // nil without storage
	mail  *mailbox.Mailbox[Message]
	ended chan struct{}

	// busy is the start of the current step in nanoseconds since started, or 0
	// between steps.
	busy    atomic.Int64
	started time.Time
	hung    atomic.Bool // whether it was reported that the loop hangs
}

// NewLoop starts a loop that drains the rings that its sources open. With storage, it loads all
// checkpoints first, which takes up to [checkpoint.LoadWait] if the storage hangs.
func NewLoop(cfg LoopConfig) *Loop {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Loop{cfg: cfg, mail: mailbox.New[Message](), ended: make(chan struct{}), started: cfg.Now()}
	saves := cfg.Storage != nil && !cfg.Observe // an observer has no position to resume
	l.owner = newOwner(&l.cfg.Config, l, saves)
	if saves {
		l.saver = checkpoint.NewSaver(cfg.Storage, l.cfg.observeSave)
		values, err := l.saver.Load()
		l.owner.load(values, err, cfg.Now())
	}
	go l.run()
	return l
}

func (l *Loop) run() {
	defer close(l.ended)
	var memory []Message
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := l.cfg.Now()
	for {
		select {
		case <-l.mail.Arrived():
		case <-timer.C:
		}
		messages := l.mail.Take(memory)
		now := l.cfg.Now()
		if len(messages) == 0 {
			l.cfg.observeLag(now.Sub(next))
		}
		next = l.step(now, messages)
		if l.owner.stopped {
			for _, m := range l.mail.Close() {
				closeLate(m)
			}
			return
		}
		clear(messages)
		memory = messages
		timer.Reset(max(next.Sub(l.cfg.Now()), 0))
	}
}

func (l *Loop) step(now time.Time, messages []Message) (next time.Time) {
	l.busy.Store(max(int64(now.Sub(l.started)), 1))
	counted := l.owner.counted
	next = l.owner.step(now, messages)
	l.busy.Store(0)
	l.hung.Store(false)
	l.cfg.observeEvents(l.owner.counted - counted)
	return next
}

// Send sends a message to the owner.
func (l *Loop) Send(m Message) {
	if !l.mail.Put(m) {
		closeLate(m)
	}
}

// closeLate closes a ring that arrives after the end of the loop.
func closeLate(m Message) {
	if m, ok := m.(Opened); ok {
		m.From.Close(m.Reader)
	}
}

// Collect drains all rings and returns the totals of all agents. With a saver, the
// totals are stored before Collect returns, so that a crash can't undo them after they
// were exported, unless the store is slower than ctx or than a grace period. Collect
// returns an error if the loop hangs, has ended, or doesn't answer before ctx ends. If
// last is set, rings are no longer read afterwards.
func (l *Loop) Collect(ctx context.Context, last bool) (Collection, error) {
	if err := l.silent(); err != nil { // so that requests don't accumulate
		return Collection{}, err
	}
	deadline := l.cfg.Now().Add(hungSave)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d.Add(-time.Until(d) / 10) // leaves time to export
	}
	answer := make(chan collected, 1)
	l.Send(&collect{deadline: deadline, last: last, done: func(c collected) { answer <- c }})
	c, err := await(ctx, l, answer)
	slices.SortStableFunc(c.snapshots, func(a, b Snapshot) int { return strings.Compare(a.ID, b.ID) })
	return Collection{Snapshots: c.snapshots, collected: c}, err
}

// await waits for the answer to a request.
func await[T any](ctx context.Context, l *Loop, answer <-chan T) (none T, err error) {
	check := time.NewTicker(hungAfter / 10)
	defer check.Stop()
	for {
		select {
		case v := <-answer:
			return v, nil
		case <-l.ended:
			select {
			case v := <-answer:
				return v, nil
			default:
				return none, errStopped
			}
		case <-check.C:
			if err := l.silent(); err != nil {
				return none, err
			}
		case <-ctx.Done():
			return none, fmt.Errorf("collect the totals of all agents: %w", context.Cause(ctx))
		}
	}
}

var (
	errHangs   = fmt.Errorf("draining has blocked for %v", hungAfter)
	errStopped = errors.New("draining has stopped")
)

// silent returns an error if the loop won't answer because it hangs or has ended.
func (l *Loop) silent() error {
	if l.hangs() {
		l.reportHung()
		return errHangs
	}
	select {
	case <-l.ended:
		return errStopped
	default:
		return nil
	}
}

// Delivered reports that a collection was exported successfully. An agent that has
// exited is reported until its last events are delivered.
func (l *Loop) Delivered(c Collection) { l.Send(delivered{c.number}) }

// Stop closes all rings and ends the loop. It returns an error if the loop hangs or
// doesn't end before ctx does; the goroutine then keeps running.
func (l *Loop) Stop(ctx context.Context) error {
	l.Send(stop{})
	check := time.NewTicker(hungAfter / 10)
	defer check.Stop()
	for {
		select {
		case <-l.ended:
			return nil
		default:
		}
		if l.hangs() {
			return fmt.Errorf("stop: %w", errHangs)
		}
		select {
		case <-l.ended:
		case <-check.C:
		case <-ctx.Done():
			return fmt.Errorf("stop draining: %w", context.Cause(ctx))
		}
	}
}

// StopSaving completes all saves, and waits for the storage until ctx ends. It must come after
// [Loop.Stop].
func (l *Loop) StopSaving(ctx context.Context) error {
	if l.saver == nil {
		return nil
	}
	return l.saver.Stop(ctx)
}

// hungAfter is the duration of a step after which the loop counts as hanging.
const hungAfter = time.Second

// hangs reports whether the loop is stuck in a step.
func (l *Loop) hangs() bool {
	began := l.busy.Load()
	return began != 0 && l.cfg.Now().Sub(l.started)-time.Duration(began) >= hungAfter
}

// reportHung reports once that the loop hangs.
func (l *Loop) reportHung() {
	if l.hung.Swap(true) {
		return
	}
	l.report(notice.Notice{
		Kind: notice.DrainHangs, Level: slog.LevelError,
		Text: fmt.Sprintf("draining has blocked for %v, so no agent is drained or reported; check the disk that the rings are on, and custom sinks", hungAfter),
	})
}

// Loop implements env. None of these methods block.

func (l *Loop) save(b *batch, ops []checkpoint.Op) {
	l.saver.Save(ops, func(err error) { l.Send(saved{batch: b, err: err}) })
}

func (l *Loop) reply(c *collect) { c.done(c.collected) }

func (l *Loop) report(n notice.Notice) { l.cfg.Report(n) }
