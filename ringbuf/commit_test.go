// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// In small rings, positions repeat quickly. At capacity 2, every other commit starts
// at 0, and an agent at full speed has wrapped before the next look.
func TestSmallRingsAtFullSpeedLoseNothing(t *testing.T) {
	const events = 30_000
	for _, capacity := range []int{2, 4, 8} {
		w := newRing(t, V4, capacity)
		r := open(t, w.Path(), Consume)
		var stop atomic.Bool
		var agent sync.WaitGroup
		agent.Go(func() {
			for i := 0; i < events && !stop.Load(); {
				n, err := w.PushBatch([]Event{{Type: TypeTxBytes, Value: uint64(i)}})
				if err != nil {
					t.Error(err)
					return
				}
				if i += n; n == 0 {
					runtime.Gosched()
				}
			}
		})
		next := uint64(0)
		for next < events && !t.Failed() {
			fill, err := r.Read(0, func(b Batch) {
				for _, e := range b.Typed() {
					if e.Value != next {
						t.Errorf("capacity %d: event %d, want %d", capacity, e.Value, next)
					}
					next++
				}
			})
			if err = errors.Join(err, r.Commit()); err != nil {
				t.Errorf("capacity %d: %v", capacity, err)
			}
			if fill == 0 {
				runtime.Gosched()
			}
		}
		stop.Store(true)
		agent.Wait()
	}
}
