// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

var (
	seeds = flag.Uint64("sim.seeds", 1000, "number of seeds to simulate")
	first = flag.Uint64("sim.first", 1, "first seed")
	one   = flag.Uint64("sim.seed", 0, "simulate only this seed, and print a trace")
	races = flag.Bool("sim.races", false, "let agents run between any two loads of a reader; needs the overlay of internal/lab/mutate")
)

// TestSimulation runs agents, stores, other consumers and crashes from seeds, and compares
// the totals with the written events.
func TestSimulation(t *testing.T) {
	if *one != 0 {
		w, wrong := simulate(*one)
		fmt.Fprintf(os.Stdout, "plan: %+v\n%s\n", w.plan, strings.Join(w.trace, "\n"))
		if wrong != "" {
			t.Fatalf("seed %d: %s", *one, wrong)
		}
		return
	}
	if testing.Short() {
		*seeds = min(*seeds, 500)
	}
	var next, failed atomic.Uint64
	var events atomic.Int64
	var mu sync.Mutex
	kinds := make(map[notice.Kind]int) // seeds with a notice of each kind
	texts := make(map[notice.Kind]string)
	var workers sync.WaitGroup
	goroutines := runtime.GOMAXPROCS(0)
	if *races {
		goroutines = 1 // because of atomic.Before
	}
	for range goroutines {
		workers.Go(func() {
			for failed.Load() == 0 {
				n := next.Add(1) - 1
				if n >= *seeds {
					return
				}
				seed := *first + n
				w, wrong := simulate(seed)
				events.Add(int64(len(w.written)))
				mu.Lock()
				for _, n := range w.notices {
					texts[n.Kind], _, _ = strings.Cut(n.Text, "; ")
				}
				for kind := range w.kinds {
					kinds[kind]++
				}
				mu.Unlock()
				if wrong != "" {
					failed.Add(1)
					t.Errorf("seed %d: %s\nreplay it with: make sim SEED=%d", seed, wrong, seed)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d seeds, %d events; seeds with each kind of notice, and an example:", min(next.Load(), *seeds), events.Load())
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%8d %s", kinds[kind], texts[kind])
	}
}
