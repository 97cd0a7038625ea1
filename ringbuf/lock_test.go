// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestRingThatIsLockedIsRefused(t *testing.T) {
	w := newRing(t, V4, 16)
	push(t, w, 0, 5)
	refused := func() {
		t.Helper()
		_, err := OpenReader(w.Path(), Consume)
		if !errors.Is(err, ErrLocked) {
			t.Fatalf("second consumer: %v", err)
		}
		says(t, err, w.Path(), "observe instead")
	}
	other := openElsewhere(t, w.Path(), Consume, nil)
	refused()
	other.quit()
	r := open(t, w.Path(), Consume)
	refused()
	equal(t, "an observer's events", read(t, open(t, w.Path(), Observe)), samples(V4, 0, 5))
	must.OK(t, r.Close())
	equal(t, "the next consumer's events", read(t, open(t, w.Path(), Consume)), samples(V4, 0, 5))
}

func TestRefusedReaderLeavesNoOpenFiles(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Consume)
	before := openFiles(t)
	for range 10 {
		if _, err := OpenReader(w.Path(), Consume); !errors.Is(err, ErrLocked) {
			t.Fatal(err)
		}
		if _, err := OpenReader(filepath.Dir(w.Path()), Consume); !errors.Is(err, ErrNotRegular) {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open, %d before", after, before)
	}
	must.OK(t, r.Close())
	open(t, w.Path(), Consume)
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(files)
}

// Two consumers of this project take turns. Neither may report the other as a foreign
// reader: each must start at the position that the other has committed.
func TestConsumersTakeTurns(t *testing.T) {
	w := newRing(t, V4, 64)
	var stop atomic.Bool
	var agent, consumers sync.WaitGroup
	agent.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := w.PushBatch(samples(V4, i, i+1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2 {
		consumers.Go(func() {
			for range 5000 {
				r, err := OpenReader(w.Path(), Consume)
				if errors.Is(err, ErrLocked) || errors.Is(err, ErrNotReady) { // not ready: wrapped to 0 in the file's first second
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if _, err = tryRead(r, 3); err == nil {
					err = r.Commit()
				}
				if err := errors.Join(err, r.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	consumers.Wait()
	stop.Store(true)
	agent.Wait()
}
