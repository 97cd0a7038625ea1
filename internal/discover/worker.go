// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// HangsAfter is how long a file system may take to answer before that is reported.
const HangsAfter = 10 * time.Second

// Worker is the goroutine that does everything on a directory that may block. Its
// other methods are safe for concurrent use and never block, apart from Stop.
type Worker struct {
	now      func() time.Time
	busy     atomic.Int64 // since when it is at work, in Unix nanoseconds; 0 if it isn't
	watchdog *time.Timer
	cancel   context.CancelFunc
	ended    chan struct{}

	mu       sync.Mutex
	requests []func()
	closed   bool
	arrived  chan struct{} // has room for one signal
}

// NewWorker returns a Worker that calls hangs while something takes longer than
// [HangsAfter].
func NewWorker(now func() time.Time, hangs func()) *Worker {
	w := &Worker{now: now, watchdog: time.AfterFunc(HangsAfter, hangs), ended: make(chan struct{}), arrived: make(chan struct{}, 1)}
	w.watchdog.Stop()
	return w
}

// Start calls run on the worker's goroutine. run returns after its context ends, and
// does everything that may block through [Worker.Do].
func (w *Worker) Start(run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() {
		defer close(w.ended)
		run(ctx)
	}()
}

// Do does something that may block. Only the worker's goroutine calls it.
func (w *Worker) Do(fn func()) {
	w.busy.Store(w.now().UnixNano())
	w.watchdog.Reset(HangsAfter)
	fn()
	w.watchdog.Stop()
	w.busy.Store(0)
}

// Hangs returns how long the worker has been waiting for the file system, or 0 if
// that isn't longer than usual.
func (w *Worker) Hangs() time.Duration {
	since := w.busy.Load()
	if took := time.Duration(w.now().UnixNano() - since); since != 0 && took >= HangsAfter {
		return took.Round(time.Second)
	}
	return 0
}

// Cancel ends the context of the worker's goroutine.
func (w *Worker) Cancel() { w.cancel() }

// Stop ends the worker and waits for it until ctx ends. It may be called before
// Start, and twice.
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

// Ended reports whether the worker's goroutine has ended.
func (w *Worker) Ended() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// Ask adds a request, and reports whether the worker's goroutine will take it.
func (w *Worker) Ask(fn func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.requests = append(w.requests, fn)
	select {
	case w.arrived <- struct{}{}:
	default:
	}
	return true
}

// Asked returns a channel that has a value after a request was added.
func (w *Worker) Asked() <-chan struct{} { return w.arrived }

// Answer carries out the requests in order. After the last call, no more are taken.
func (w *Worker) Answer(last bool) {
	w.mu.Lock()
	requests := w.requests
	w.requests, w.closed = nil, last
	w.mu.Unlock()
	for _, fn := range requests {
		fn()
	}
}
