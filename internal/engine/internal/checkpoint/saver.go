// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Storage stores checkpoints. It must survive a crash of the process, but not of the machine.
// Its calls may be slow, fail or hang. A [Saver] makes one call at a time.
type Storage interface {
	// Get returns the values of keys. The value of a key is nil if there is none.
	Get(ctx context.Context, keys []string) ([][]byte, error)
	// Apply stores all values, or none.
	Apply(ctx context.Context, ops []Op) error
}

// Op stores a value.
type Op struct {
	Key   string
	Value []byte
}

const (
	// LoadWait limits the time in which the values are loaded.
	LoadWait = 5 * time.Second
	// loadRetry is the time until a failed load is repeated.
	loadRetry = 200 * time.Millisecond
)

// Saver makes all calls of the storage extension on one goroutine. A call may be slow, fail, or
// hang forever.
type Saver struct {
	storage Storage
	applied func(took time.Duration, err error)

	loaded chan struct{} // closed when values and err are set
	values [][]byte
	err    error
	saves  chan func()   // buffer of one
	stop   chan struct{} // closed by Stop
	once   sync.Once
	done   chan struct{} // closed when the goroutine ends

	ctx    context.Context // of all calls
	cancel context.CancelFunc
}

// NewSaver starts a saver. It calls applied after each save, unless it is nil.
func NewSaver(s Storage, applied func(took time.Duration, err error)) *Saver {
	ctx, cancel := context.WithCancel(context.Background())
	saver := &Saver{
		storage: s, applied: applied, ctx: ctx, cancel: cancel,
		loaded: make(chan struct{}), saves: make(chan func(), 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go saver.run()
	return saver
}

// Load returns the values of all keys; see [Keys]. It repeats a call that fails, and returns an
// error after [LoadWait].
func (s *Saver) Load() ([][]byte, error) {
	late := time.NewTimer(LoadWait)
	defer late.Stop()
	select {
	case <-s.loaded:
		return s.values, s.err
	case <-late.C:
		return nil, context.DeadlineExceeded
	}
}

// Save requests that all of ops are applied atomically. It calls done with the result, on the
// saver's goroutine. It retains ops and never blocks. Only one save may be in progress.
func (s *Saver) Save(ops []Op, done func(err error)) {
	select {
	case s.saves <- func() { s.apply(ops, done) }:
	case <-s.done:
	}
}

// Stop completes the save in progress and ends the goroutine. If ctx ends first, it cancels the
// call and returns an error. If the call hangs, the goroutine keeps running. It must be called
// after the last save, and may be called again.
func (s *Saver) Stop(ctx context.Context) error {
	s.once.Do(func() { close(s.stop) })
	defer s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("not all checkpoints were stored because the storage extension is too slow: %w", context.Cause(ctx))
	}
}

func (s *Saver) run() {
	defer close(s.done)
	s.values, s.err = s.load()
	close(s.loaded)
	for {
		select {
		case save := <-s.saves:
			save()
		case <-s.stop:
			select {
			case save := <-s.saves:
				save()
			default:
			}
			return
		}
	}
}

func (s *Saver) load() ([][]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, LoadWait)
	defer cancel()
	for {
		values, err := s.storage.Get(ctx, Keys())
		if end, _ := ctx.Deadline(); err == nil || time.Until(end) <= loadRetry {
			return values, err
		}
		select {
		case <-s.stop:
			return nil, err
		case <-time.After(loadRetry):
		}
	}
}

func (s *Saver) apply(ops []Op, done func(error)) {
	began := time.Now()
	err := s.storage.Apply(s.ctx, ops)
	if s.ctx.Err() != nil {
		return
	}
	if s.applied != nil {
		s.applied(time.Since(began), err)
	}
	done(err)
}
