// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/mailbox"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// LoopConfig configures a [Loop].
type LoopConfig struct {
	Config
	Storage checkpoint.Storage  // nil to commit events without storing totals; an observer needs none
	Report  func(notice.Notice) // must not block
	Now     func() time.Time

	ObserveLag    func(time.Duration)                 // receives how late a round of drains began; may be nil
	ObserveEvents func(uint64)                        // receives the number of events of a round; may be nil
	ObserveSave   func(took time.Duration, err error) // receives the duration and the error of a save; may be nil
}

// Loop runs an owner on its own goroutine, and a saver with storage. Its methods are safe for concurrent use. None
// of them waits for a step that hangs, for example because of a failing disk.
type Loop struct {
	cfg   LoopConfig
	owner *owner
	saver *checkpoint.Saver // nil without storage
	mail  *mailbox.Mailbox[Message]
	ended chan struct{}
}

// NewLoop starts a loop that drains the rings that its sources open. With storage, it loads all
// checkpoints first, which takes up to [checkpoint.LoadWait] if the storage hangs.
func NewLoop(cfg LoopConfig) *Loop {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Loop{cfg: cfg, mail: mailbox.New[Message](), ended: make(chan struct{})}
	saves := cfg.Storage != nil && !cfg.Observe // an observer has no position to resume
	l.owner = newOwner(&l.cfg.Config, l, saves)
	if saves {
		l.saver = checkpoint.NewSaver(cfg.Storage, l.cfg.ObserveSave)
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
		if len(messages) == 0 && l.cfg.ObserveLag != nil {
			l.cfg.ObserveLag(max(now.Sub(next), 0))
		}
		next = l.step(now, messages)
		if l.owner.stopped {
			for _, m := range l.mail.Close() {
				refuseLate(m)
			}
			return
		}
		clear(messages)
		memory = messages
		timer.Reset(max(next.Sub(l.cfg.Now()), 0))
	}
}

func (l *Loop) step(now time.Time, messages []Message) (next time.Time) {
	counted := l.owner.counted
	next = l.owner.step(now, messages)
	if n := l.owner.counted - counted; n > 0 && l.cfg.ObserveEvents != nil {
		l.cfg.ObserveEvents(n)
	}
	return next
}

// Send sends a message to the owner.
func (l *Loop) Send(m Message) {
	if !l.mail.Put(m) {
		refuseLate(m)
	}
}

// refuseLate refuses a ring that is offered after the end of the loop.
func refuseLate(m Message) {
	if m, ok := m.(Offer); ok {
		m.From.Answer(m.Agent, m.Reader, ErrUnneeded)
	}
}

// Collect drains all rings and returns the totals of all agents. With a saver, the
// totals are stored before Collect returns, so that a crash can't undo them after they
// were exported, unless the store is slower than ctx or than a grace period. Collect
// returns an error if the loop hangs or has ended. If last is set, and there is no saver, rings are no longer
// read afterwards.
func (l *Loop) Collect(ctx context.Context, last bool) (Collection, error) {
	ctx, cancel := context.WithTimeout(ctx, hungAfter)
	defer cancel()
	end, _ := ctx.Deadline()
	left := time.Until(end)
	answer := make(chan Collection, 1)
	l.Send(&collect{
		deadline: l.cfg.Now().Add(min(hungSave, left*9/10)), // leaves time to export
		last:     last, expired: func() bool { return ctx.Err() != nil }, done: func(c Collection) { answer <- c },
	})
	select {
	case c := <-answer:
		return c, nil
	case <-l.ended:
		return Collection{}, errStopped
	case <-ctx.Done():
	}
	err := fmt.Errorf("collect the totals of all agents: %w", context.Cause(ctx))
	if errors.Is(err, context.DeadlineExceeded) && left >= leastAnswer {
		l.report(notice.Notice{
			Kind: notice.DrainHangs, Level: slog.LevelError, Err: err,
			Text: "draining has blocked, so no agent is drained or reported; check the disk that the rings are on, and custom sinks",
		})
	}
	return Collection{}, err
}

const (
	// hungAfter is the time without an answer after which the loop counts as hanging. If ctx ends
	// earlier, the loop has answered before that, too, but may be late if it has less than leastAnswer.
	hungAfter   = hungSave + leastAnswer
	leastAnswer = time.Second
)

var errStopped = errors.New("draining has stopped")

// Delivered reports that a collection was exported successfully. An agent that has
// exited is reported until its last events are delivered.
func (l *Loop) Delivered(c Collection) { l.Send(delivered{c.number}) }

// stopWait limits the time in which the last events are stored.
const stopWait = time.Second

// Stop stores the last events, closes all rings and ends the loop. It returns an error if the loop doesn't end before
// ctx does; the goroutine then keeps running.
func (l *Loop) Stop(ctx context.Context) error {
	wait := stopWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/4)
	}
	l.Send(stop{l.cfg.Now().Add(wait)})
	select {
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop draining: %w", context.Cause(ctx))
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

// Loop implements env. None of these methods block.

func (l *Loop) save(_ *batch, ops []checkpoint.Op) {
	l.saver.Save(ops, func(err error) { l.Send(saved{err}) })
}

func (l *Loop) reply(c *collect) { c.done(c.Collection) }

func (l *Loop) report(n notice.Notice) { l.cfg.Report(n) }
