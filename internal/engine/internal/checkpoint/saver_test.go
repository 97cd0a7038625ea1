// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// storage is a storage extension whose calls are slow, fail or hang.
type storage struct {
	delay    time.Duration
	failures int           // number of calls that fail
	hangs    bool          // until the context ends
	deaf     chan struct{} // if set, calls hang until it is closed, whatever the context
	applied  int
}

var errDisk = errors.New("disk full")

func (s *storage) call(ctx context.Context) error {
	switch {
	case s.deaf != nil:
		<-s.deaf
	case s.hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(s.delay) // in a bubble of synctest
	if s.failures > 0 {
		s.failures--
		return errDisk
	}
	return nil
}

func (s *storage) Get(ctx context.Context, keys []string) ([][]byte, error) {
	return make([][]byte, len(keys)), s.call(ctx)
}

func (s *storage) Apply(ctx context.Context, _ []Op) error {
	err := s.call(ctx)
	s.applied++
	return err
}

func ignore(time.Duration, error) {}

func TestLoadIsRepeatedUntilItsTimeLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		storage storage
		took    time.Duration
		want    error
	}{
		"works":             {storage{delay: time.Second}, time.Second, nil},
		"fails three times": {storage{failures: 3}, 3 * loadRetry, nil},
		"always fails":      {storage{failures: 1e9}, LoadWait - loadRetry, errDisk},
		"hangs":             {storage{hangs: true}, LoadWait, context.DeadlineExceeded},
		"hangs for good":    {storage{deaf: make(chan struct{})}, LoadWait, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.storage.deaf != nil {
					tc.storage.deaf = make(chan struct{}) // of the bubble
					defer close(tc.storage.deaf)
				}
				began := time.Now()
				s := NewSaver(&tc.storage, ignore)
				values, err := s.Load()
				if took := time.Since(began); took != tc.took || !errors.Is(err, tc.want) || err == nil && len(values) != keys {
					t.Errorf("%d values and error %v after %v, want %v after %v", len(values), err, took, tc.want, tc.took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = s.Stop(ctx)
			})
		})
	}
}

func TestStopEndsALoadThatIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := NewSaver(&storage{failures: 1e9}, ignore), time.Now()
		if must.OK(t, s.Stop(t.Context())); time.Since(began) > 0 {
			t.Errorf("Stop took %v", time.Since(began))
		}
	})
}

func TestSavesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &storage{delay: time.Second}
		var took time.Duration
		var failed int
		s := NewSaver(store, func(d time.Duration, err error) {
			if took += d; err != nil {
				failed++
			}
		})
		_, err := s.Load()
		must.OK(t, err)
		results := make(chan error, 1)
		for _, want := range []error{nil, errDisk, nil} {
			if want != nil {
				store.failures = 1
			}
			s.Save(nil, func(err error) { results <- err })
			if err := <-results; !errors.Is(err, want) {
				t.Errorf("the result is %v, want %v", err, want)
			}
		}
		must.OK(t, s.Stop(t.Context()))
		if failed != 1 || took != 3*time.Second || store.applied != 3 {
			t.Errorf("%d saves, %d failed, they took %v", store.applied, failed, took)
		}
	})
}

// While the goroutine still loads, it finds both the save and the stop afterwards, in any order.
func TestStopCompletesTheSaveInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Saver
		for range 30 {
			store := &storage{delay: time.Second}
			s = NewSaver(store, ignore)
			s.Save(nil, func(error) {})
			must.OK(t, s.Stop(t.Context()))
			if store.applied != 1 {
				t.Fatalf("%d saves were made", store.applied)
			}
		}
		for range 3 { // a loop that hung may still ask
			s.Save(nil, func(error) { t.Error("saved after Stop") })
		}
		synctest.Wait()
	})
}

// Save doesn't wait, and Stop returns when its context ends.
func TestHangingStorageBlocksNobody(t *testing.T) {
	for name, deaf := range map[string]bool{"until it is canceled": false, "for good": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &storage{}
				s := NewSaver(store, func(time.Duration, error) { t.Error("a save is reported after Stop") })
				_, err := s.Load()
				must.OK(t, err)
				if store.hangs = true; deaf {
					store.deaf = make(chan struct{})
					defer close(store.deaf)
				}
				began := time.Now()
				s.Save(nil, func(error) { t.Error("a callback runs after Stop") })
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
					t.Errorf("Stop returned %v after %v", err, time.Since(began))
				}
			})
		})
	}
}
