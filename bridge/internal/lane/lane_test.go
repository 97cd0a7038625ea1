// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"sync"
	"testing"
)

func TestIndexIsInRange(t *testing.T) {
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if i := Index(); i >= Count {
				t.Errorf("Index() = %d, want less than %d", i, Count)
			}
		})
	}
	wg.Wait()
}

// Concurrent goroutines are spread over all lanes: 256 goroutines use every lane.
func TestIndexSpreadsGoroutines(t *testing.T) {
	const goroutines = 16 * Count
	var (
		mu   sync.Mutex
		seen [Count]int
		wg   sync.WaitGroup
		all  sync.WaitGroup
	)
	all.Add(goroutines)
	for range goroutines {
		wg.Go(func() {
			i := Index()
			mu.Lock()
			seen[i]++
			mu.Unlock()
			all.Done()
			all.Wait() // keeps the stack in use until all goroutines have one
		})
	}
	wg.Wait()
	for i, n := range seen {
		if n == 0 {
			t.Errorf("lane %d has none of %d goroutines: %v", i, goroutines, seen)
		}
	}
}

func TestIndexDoesNotAllocate(t *testing.T) {
	var sum uint32
	if n := testing.AllocsPerRun(100, func() { sum += Index() }); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}
