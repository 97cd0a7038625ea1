// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a store whose calls are slow or hang.
type slow struct {
	*memory

	mu    sync.Mutex
	delay time.Duration
	perOp time.Duration
	hang  func(key string) bool // whether a call hangs; "" stands for Apply
	deaf  chan struct{}         // if set, calls that hang end when it is closed, instead of when they are canceled
	gets  atomic.Int64
}

func (s *slow) wait(ctx context.Context, key string, ops int) error {
	if s.hang != nil && s.hang(key) {
		if s.deaf != nil {
			<-s.deaf
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(s.delay + time.Duration(ops)*s.perOp) // in a bubble of synctest
	return nil
}

func (s *slow) Get(ctx context.Context, key string) ([]byte, error) {
	s.gets.Add(1)
	if err := s.wait(ctx, key, 1); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.Get(ctx, key)
}

func (s *slow) Apply(ctx context.Context, ops []Op) error {
	if err := s.wait(ctx, "", len(ops)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.Apply(ctx, ops)
}

func startSaver(s Storage, change func(*Config)) *Saver {
	cfg := Config{Storage: s, StaleAfter: staleAfter, Now: time.Now}
	if change != nil {
		change(&cfg)
	}
	saver := NewSaver(cfg)
	saver.Start()
	return saver
}

// The store has 500 stale keys and takes 10 ms for each.
func TestSweepDelaysLoadsAndSavesByOneCallAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10 * time.Millisecond
		store := &slow{memory: newMemory(keysOf(500)...), perOp: each}
		s := startSaver(store, nil)
		time.Sleep(staleAfter + 5*each) // in a bubble of synctest; in the middle of the sweep
		for range 20 {
			began := time.Now()
			loaded, saved := make(chan time.Duration, 1), make(chan time.Duration, 1)
			s.Load(Key("/run/nixl/late"), func([]byte, error) { loaded <- time.Since(began) })
			s.Save([]Op{set(Key("/run/nixl/late"), "1")}, func(error) { saved <- time.Since(began) })
			call := (sweepBatch + 1) * each // with the index
			if took := <-loaded; took > call+each {
				t.Errorf("a load took %v, one call takes %v", took, call)
			}
			if took := <-saved; took > call+3*each {
				t.Errorf("a save took %v", took)
			}
			time.Sleep(7 * each) // in a bubble of synctest
		}
		time.Sleep(time.Minute) // in a bubble of synctest
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if len(store.values) != 2 {
			t.Errorf("%d values are left, want one and the index", len(store.values))
		}
	})
}

// Requests don't wait, and Stop returns when its context ends. No callback runs afterwards.
func TestHangingStoreBlocksNoCaller(t *testing.T) {
	hangs := map[string]func(key string) bool{
		"Get of a checkpoint": func(key string) bool { return key == Key("/a") },
		"Get of the index":    func(key string) bool { return key == indexKey },
		"Apply":               func(key string) bool { return key == "" },
	}
	for name, hang := range hangs {
		for _, deaf := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &slow{memory: newMemory(keysOf(3)...), hang: hang}
					if deaf {
						store.deaf = make(chan struct{})
					}
					s := startSaver(store, nil)
					var stopped atomic.Bool
					late := func(error) {
						if stopped.Load() {
							t.Error("a callback ran after Stop")
						}
					}
					began := time.Now()
					for range 1000 {
						s.Load(Key("/a"), func([]byte, error) { late(nil) })
						s.Save([]Op{set(Key("/b"), "1")}, late)
						s.Forget(Key("/c"))
					}
					if took := time.Since(began); took != 0 {
						t.Errorf("the requests took %v", took)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Stop returned %v", err)
					}
					if took := time.Since(began); took != 3*time.Second {
						t.Errorf("Stop returned after %v", took)
					}
					stopped.Store(true)
					if deaf {
						close(store.deaf)
					}
					synctest.Wait() // and the goroutine ends
				})
			})
		}
	}
}

func TestStopCompletesQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{memory: newMemory(keysOf(300)...), delay: time.Second}
		s := startSaver(store, nil)
		time.Sleep(2 * staleAfter) // in a bubble of synctest; the sweep hasn't ended
		saved := 0
		for range 5 {
			s.Save([]Op{set(Key("/b"), "1")}, func(err error) {
				if err == nil {
					saved++
				}
			})
		}
		s.Forget(keysOf(1)[0])
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil || saved != 5 {
			t.Errorf("Stop returned %v, %d of 5 were saved", err, saved)
		}
		s.Save([]Op{set(Key("/b"), "2")}, func(error) { t.Error("saved after Stop") })
		if err := s.Stop(ctx); err != nil {
			t.Errorf("Stop returned %v the second time", err)
		}
		if store.values[Key("/b")] != "1" || store.values[keysOf(1)[0]] != "" {
			t.Errorf("values %v", store.values)
		}
	})
}

// Failed saves are passed to their callback, and failed background calls to Report. Applied
// is called for every batch.
func TestFailuresOfTheStoreAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{memory: newMemory(keysOf(3)...), delay: time.Second}
		store.err = errDisk
		var mu sync.Mutex // guards what the callbacks write
		var reported []string
		var took time.Duration
		failed := 0
		s := startSaver(store, func(c *Config) {
			c.Report = func(text string, err error) {
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, errDisk) {
					t.Errorf("error is %v", err)
				}
				reported = append(reported, text)
			}
			c.Applied = func(d time.Duration, err error) {
				mu.Lock()
				defer mu.Unlock()
				took += d
				if err != nil {
					failed++
				}
			}
		})
		var result error
		s.Save([]Op{set(Key("/b"), "1")}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			result = err
		})
		time.Sleep(3 * time.Second) // in a bubble of synctest
		synctest.Wait()
		mu.Lock()
		if !errors.Is(result, errDisk) || failed != 1 || took != time.Second || len(reported) != 1 {
			t.Errorf("error %v, %d batches failed in %v, reported %q", result, failed, took, reported)
		}
		mu.Unlock()
		time.Sleep(time.Hour) // in a bubble of synctest; one retry per minute
		if got := store.gets.Load(); got > 61 {
			t.Errorf("the index was read %d times in an hour", got)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCallbacksMayMakeRequests(t *testing.T) {
	s := startSaver(newMemory(), nil)
	done := make(chan struct{})
	s.Load(Key("/a"), func([]byte, error) {
		s.Save([]Op{set(Key("/a"), "1")}, func(error) {
			s.Forget(Key("/a"))
			s.Load(Key("/a"), func(value []byte, err error) {
				if value != nil || err != nil {
					t.Errorf("loaded %q, %v", value, err)
				}
				close(done)
			})
		})
	})
	<-done
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
