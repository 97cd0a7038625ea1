// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Config configures a [Saver].
type Config struct {
	Storage    Storage
	StaleAfter time.Duration // when unused checkpoints are removed
	Now        func() time.Time

	// Report is called when a background call fails: reading the index, or removing
	// old checkpoints. It may be nil.
	Report func(text string, err error)
	// Applied is called after each batch. It may be nil.
	Applied func(took time.Duration, err error)
}

// Saver makes all calls of the storage extension on one goroutine. A call may be slow, fail, or hang
// forever. Only [Saver.Stop] waits for it, until its context ends. Requests are
// queued and never dropped.
//
// Callbacks run on the saver's goroutine. They must not block, and may make requests.
type Saver struct {
	cfg  Config
	wake chan struct{} // signals new requests; buffer of one
	done chan struct{} // closed when the goroutine ends

	ctx    context.Context // context of all calls
	cancel context.CancelFunc

	mu    sync.Mutex // guards queue
	queue *Queue

	callbacks sync.Mutex // held while callbacks run
	abandoned bool       // callbacks must no longer run; guarded by callbacks
}

// NewSaver returns a saver. It makes no calls before [Saver.Start].
func NewSaver(cfg Config) *Saver {
	s := &Saver{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), queue: NewQueue(cfg.StaleAfter, cfg.Now())}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start starts the goroutine. It must be called once.
func (s *Saver) Start() { go s.run() }

// Load requests the value of a key, which is nil if there is none. It must come before the
// first save of the key.
func (s *Saver) Load(key string, done func(value []byte, err error)) {
	s.ask(func(q *Queue) { q.Load(key, done) })
}

// Save requests that all of ops are applied atomically. It retains ops and their values. A
// key must not have another save in progress; see the package documentation.
func (s *Saver) Save(ops []Op, done func(err error)) {
	s.ask(func(q *Queue) { q.Save(ops, done) })
}

// Stored reports whether a value of a key is stored or may be. known is false until the
// list of keys was read, which the first call requests.
func (s *Saver) Stored(key string) (stored, known bool) {
	s.ask(func(q *Queue) { stored, known = q.stored(key) })
	return stored, known
}

// Forget requests the removal of a key in the next batch.
func (s *Saver) Forget(key string) {
	s.ask(func(q *Queue) { q.Forget(key) })
}

func (s *Saver) ask(what func(*Queue)) {
	s.mu.Lock()
	if !s.queue.stopping {
		what(s.queue)
	}
	s.mu.Unlock()
	s.poke()
}

func (s *Saver) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Stop completes all queued requests and ends the goroutine, which must have been started.
// Later requests are ignored. If ctx ends first, Stop cancels the current call and returns
// an error. No callback runs afterwards. If the call hangs, the goroutine keeps running.
func (s *Saver) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.queue.Stop()
	s.mu.Unlock()
	s.poke()
	defer s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.callbacks.Lock()
	defer s.callbacks.Unlock()
	select {
	case <-s.done:
		return nil
	default:
	}
	s.abandoned = true
	return fmt.Errorf("not all checkpoints were stored because the storage extension is too slow: %w", context.Cause(ctx))
}

func (s *Saver) run() {
	defer close(s.done)
	for {
		call, at, stopping := s.next()
		switch {
		case call != nil:
			if !s.do(call) {
				return
			}
		case stopping:
			return
		default:
			s.sleep(at)
		}
	}
}

// Next returns the next call, or nil and the time of the next background call.
func (s *Saver) next() (call *Call, at time.Time, stopping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Next(s.cfg.Now()), s.queue.Wake(), s.queue.stopping
}

// sleep waits for a request, or until at unless it is zero.
func (s *Saver) sleep(at time.Time) {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(at.Sub(s.cfg.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.wake:
	case <-due:
	}
}

// do makes a call, and reports whether to continue.
func (s *Saver) do(call *Call) bool {
	began := time.Now()
	value, err := call.Do(s.ctx, s.cfg.Storage)
	took := time.Since(began)
	s.mu.Lock()
	callback := s.queue.Done(call, value, err, s.cfg.Now())
	s.mu.Unlock()

	s.callbacks.Lock()
	defer s.callbacks.Unlock()
	if s.abandoned {
		return false
	}
	if len(call.Ops) > 0 && s.cfg.Applied != nil {
		s.cfg.Applied(took, err)
	}
	if err != nil && call.tidies && s.cfg.Report != nil {
		s.cfg.Report(call.failure(), err)
	}
	callback()
	return true
}

// failure describes the effect of a failed background call.
func (c *Call) failure() string {
	if c.Key == indexKey {
		return "list of checkpoints can't be read, so checkpoints of exited agents are not removed yet; reading is retried"
	}
	return "checkpoints of exited agents can't be removed; removal is retried"
}
