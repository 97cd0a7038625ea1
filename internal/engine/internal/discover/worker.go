// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/mailbox"
)

// HangTimeout is the time after which a file system that doesn't respond is reported.
const HangTimeout = 10 * time.Second

// Worker is a goroutine that makes all calls on a directory that may block. Only that
// goroutine may call Do and RunSubmitted. All other methods are safe for concurrent
// use after Start, and none of them blocks, except for Stop.
type Worker struct {
	now       func() time.Time
	started   time.Time
	busySince atomic.Int64 // start of the current Do in nanoseconds since started, plus 1; 0 if there is none
	watchdog  *time.Timer
	cancel    context.CancelFunc
	ended     chan struct{}

	submitted *mailbox.Mailbox[func()]
}

// NewWorker returns a Worker that calls hung if a call of [Worker.Do] takes longer
// than [HangTimeout].
func NewWorker(now func() time.Time, hung func()) *Worker {
	w := &Worker{now: now, started: now(), watchdog: time.AfterFunc(HangTimeout, hung), ended: make(chan struct{}), submitted: mailbox.New[func()]()}
	w.watchdog.Stop()
	return w
}

// Start calls run on the worker's goroutine. run must return after its context ends,
// and must make all calls that may block through [Worker.Do].
func (w *Worker) Start(run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() {
		defer close(w.ended)
		run(ctx)
	}()
}

// Do runs a function that may block.
func (w *Worker) Do(fn func()) {
	w.busySince.Store(1 + int64(w.now().Sub(w.started)))
	w.watchdog.Reset(HangTimeout)
	fn()
	w.watchdog.Stop()
	w.busySince.Store(0)
}

// HungFor returns how long the current call of Do has taken, or 0 if that is less than
// [HangTimeout].
func (w *Worker) HungFor() time.Duration {
	since := w.busySince.Load()
	if took := w.now().Sub(w.started) - time.Duration(since-1); since != 0 && took >= HangTimeout {
		return took.Round(time.Second)
	}
	return 0
}

// Cancel cancels the context of the worker's goroutine.
func (w *Worker) Cancel() { w.cancel() }

// Stop stops the worker and waits for its goroutine until ctx ends. It may be called
// more than once, and before Start.
func (w *Worker) Stop(ctx context.Context) error {
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stopped reports whether the worker's goroutine has ended.
func (w *Worker) Stopped() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// Submit submits a function to the worker's goroutine. It reports false if the
// goroutine no longer accepts one.
func (w *Worker) Submit(fn func()) bool { return w.submitted.Put(fn) }

// Submitted returns a channel that has a value after a function was submitted.
func (w *Worker) Submitted() <-chan struct{} { return w.submitted.Arrived() }

// RunSubmitted runs the submitted functions in order. With last, no more are accepted.
func (w *Worker) RunSubmitted(last bool) {
	take := w.submitted.Close
	if !last {
		take = func() []func() { return w.submitted.Take(nil) }
	}
	for _, fn := range take() {
		fn()
	}
}
