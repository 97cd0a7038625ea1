// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// LoopConfig says how a [Loop] drains.
type LoopConfig struct {
	Config
	Saver  *checkpoint.Saver   // nil to commit events as they are counted
	Report func(notice.Notice) // must not block
	Now    func() time.Time

	// ObserveLag is told how late a round of drains began, and ObserveEvents how
	// many events one has counted. Either may be nil.
	ObserveLag    func(time.Duration)
	ObserveEvents func(uint64)
}

func (c *LoopConfig) observeLag(lag time.Duration) {
	if c.ObserveLag != nil {
		c.ObserveLag(max(lag, 0))
	}
}

func (c *LoopConfig) observeEvents(n uint64) {
	if c.ObserveEvents != nil && n > 0 {
		c.ObserveEvents(n)
	}
}

// Loop runs an owner on a goroutine of its own. Its methods are safe for
// concurrent use, and none of them waits for a step that hangs, in a failing disk
// for example.
type Loop struct {
	cfg   LoopConfig
	owner *owner
	mail  *mailbox
	ended chan struct{}

	// busy is when the current step began, in nanoseconds since started, and 0
	// between steps.
	busy    atomic.Int64
	started time.Time
	hung    atomic.Bool // that was reported
}

// NewLoop starts a loop that drains what its sources open.
func NewLoop(cfg LoopConfig) *Loop {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Loop{cfg: cfg, mail: newMailbox(), ended: make(chan struct{}), started: cfg.Now()}
	l.owner = newOwner(&l.cfg.Config, cfg.Saver != nil)
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
		case <-l.mail.arrived:
		case <-timer.C:
		}
		messages := l.mail.take(memory)
		now := l.cfg.Now()
		if len(messages) == 0 {
			l.cfg.observeLag(now.Sub(next))
		}
		next = l.step(now, messages)
		if l.owner.stopped {
			l.refuse()
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
	next, effects := l.owner.step(now, messages)
	l.busy.Store(0)
	l.hung.Store(false)
	l.cfg.observeEvents(l.owner.counted - counted)
	for _, e := range effects {
		e.run(l)
	}
	return next
}

// refuse closes what arrives after the end.
func (l *Loop) refuse() {
	l.mail.close(func(m Message) {
		if m, ok := m.(Opened); ok {
			m.From.Close(m.Reader)
		}
	})
}

// Send passes on a message of a source.
func (l *Loop) Send(m Message) { l.mail.put(m) }

// Collection is the totals of all agents at one time, by ID.
type Collection struct {
	Snapshots []Snapshot
	number    uint64
}

// Collect drains all rings and returns the totals of all agents. With a saver
// they are stored by then, so that whoever exports them doesn't have to take
// them back after a crash, unless the store is slower than ctx or than a grace
// period. The error says that the loop hangs, has ended, or didn't answer before
// the end of ctx. After the last collection nothing is read from the rings any
// more.
func (l *Loop) Collect(ctx context.Context, last bool) (Collection, error) {
	if err := l.silent(); err != nil { // or requests would pile up
		return Collection{}, err
	}
	deadline := l.cfg.Now().Add(hungSave)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d.Add(-time.Until(d) / 10) // leaves time to export
	}
	answer := make(chan collected, 1)
	l.mail.put(&collect{deadline: deadline, last: last, done: func(c collected) { answer <- c }})
	check := time.NewTicker(hungAfter / 10)
	defer check.Stop()
	for {
		select {
		case c := <-answer:
			return Collection{Snapshots: c.snapshots, number: c.number}, nil
		case <-check.C:
			if err := l.silent(); err != nil {
				return Collection{}, err
			}
		case <-ctx.Done():
			return Collection{}, fmt.Errorf("collect the totals of all agents: %w", context.Cause(ctx))
		}
	}
}

var errHangs = fmt.Errorf("draining has blocked for %v", hungAfter)

// silent returns why the loop won't answer: it hangs, or has ended.
func (l *Loop) silent() error {
	if l.hangs() {
		l.reportHung()
		return errHangs
	}
	select {
	case <-l.ended:
		return errors.New("rings are no longer drained")
	default:
		return nil
	}
}

// Delivered says that a collection has arrived. An agent that has exited is
// reported until its last events have.
func (l *Loop) Delivered(c Collection) { l.mail.put(delivered{c.number}) }

// Stop gives up all rings and ends the loop. It waits until ctx ends; a loop that
// hangs is left behind, which the error says.
func (l *Loop) Stop(ctx context.Context) error {
	l.mail.put(stop{})
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

// hungAfter is how long a step may take before others go on without the loop.
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

// A loop carries out the effects of its owner. None of this blocks.

func (l *Loop) load(id, key string) {
	l.cfg.Saver.Load(key, func(value []byte, err error) {
		l.mail.put(loaded{id: id, value: value, err: err})
	})
}

func (l *Loop) save(b *batch, ops []checkpoint.Op) {
	l.cfg.Saver.Save(ops, func(err error) { l.mail.put(saved{batch: b, err: err}) })
}

func (l *Loop) forget(key string) { l.cfg.Saver.Forget(key) }

func (l *Loop) reply(c *collect) { c.done(collected{number: c.number, snapshots: c.snapshots}) }

func (l *Loop) report(n notice.Notice) { l.cfg.Report(n) }
