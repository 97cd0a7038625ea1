// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Config is what a [Saver] needs.
type Config struct {
	Store      Store
	StaleAfter time.Duration // after which a checkpoint that nobody asked for is removed
	Now        func() time.Time

	// Report is called with what goes wrong while nobody waits: the index
	// can't be read, or old checkpoints can't be removed. It may be nil.
	Report func(text string, err error)
	// Applied is called after each batch. It may be nil.
	Applied func(took time.Duration, err error)
}

// Saver makes all calls of a store, on one goroutine. Any of them may be slow,
// fail, or hang for ever. Only [Saver.Stop] waits for the store, until its
// context ends. Nothing is dropped: what can't be saved yet waits.
//
// Callbacks run on the saver's goroutine, must not block, and may ask for more.
type Saver struct {
	cfg  Config
	wake chan struct{} // one place: there may be something to do
	done chan struct{} // closed when the goroutine ends

	ctx    context.Context // of all calls
	cancel context.CancelFunc

	mu    sync.Mutex // guards queue
	queue *queue

	telling   sync.Mutex // held while callbacks run
	abandoned bool       // no callback may run any more; guarded by telling
}

// NewSaver returns a saver that does nothing before [Saver.Start].
func NewSaver(cfg Config) *Saver {
	s := &Saver{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), queue: newQueue(cfg.StaleAfter, cfg.Now())}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start starts the goroutine. It must be called once.
func (s *Saver) Start() { go s.run() }

// Load asks for the value of a key, nil if there is none. It is to come before
// the first save of the key.
func (s *Saver) Load(key string, done func(value []byte, err error)) {
	s.ask(func(q *queue) { q.load(key, done) })
}

// Save asks for all of ops to be applied, or none. It keeps ops and their
// values. There must be no other save of the same key that isn't done, see the
// package's documentation.
func (s *Saver) Save(ops []Op, done func(err error)) {
	s.ask(func(q *queue) { q.save(ops, done) })
}

// Forget asks for a key to be removed, with the next batch.
func (s *Saver) Forget(key string) {
	s.ask(func(q *queue) { q.forget(key) })
}

func (s *Saver) ask(what func(*queue)) {
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

// Stop finishes everything that is queued and ends the goroutine, which must have
// been started. Later requests are ignored. If ctx ends first, Stop cancels the
// call under way and returns an error. No callback runs after that; if the call
// hangs, the goroutine stays behind.
func (s *Saver) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.queue.stop()
	s.mu.Unlock()
	s.poke()
	defer s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	select {
	case <-s.done:
		return nil
	default:
	}
	s.abandoned = true
	return fmt.Errorf("not all checkpoints were stored, because the storage extension takes too long: %w", context.Cause(ctx))
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

// next returns the call to make, or nil and when there may be one.
func (s *Saver) next() (call *call, at time.Time, stopping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.next(s.cfg.Now()), s.queue.wake(), s.queue.stopping
}

// sleep waits until somebody asks for something, or until at unless it is zero.
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

// do makes a call, and reports whether to go on.
func (s *Saver) do(call *call) bool {
	began := time.Now()
	value, err := call.do(s.ctx, s.cfg.Store)
	took := time.Since(began)
	s.mu.Lock()
	tell := s.queue.done(call, value, err, s.cfg.Now())
	s.mu.Unlock()

	s.telling.Lock()
	defer s.telling.Unlock()
	if s.abandoned {
		return false
	}
	if len(call.Ops) > 0 && s.cfg.Applied != nil {
		s.cfg.Applied(took, err)
	}
	if err != nil && call.tidies && s.cfg.Report != nil {
		s.cfg.Report(call.trouble(), err)
	}
	tell()
	return true
}

// trouble describes the effect of a failed call that nobody waits for.
func (c *call) trouble() string {
	if c.Key == indexKey {
		return "list of checkpoints can't be read; those of exited agents stay in the storage until it can"
	}
	return "checkpoints of exited agents can't be removed; it will be tried again"
}
