//go:build linux && (amd64 || arm64)

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Files that were refused together are tried again together, though each was
// looked at a little later than the one before: what is said of them is one
// notice, not one for each that is the first to be due.
func TestCrowdStaysTogether(t *testing.T) {
	x := newWorld(t)
	for i := range 200 {
		touch(t, filepath.Join(x.dir, fmt.Sprintf("empty-%03d", i)), "")
	}
	w := x.watcher(func(c *Config) {
		c.Now = func() time.Time {
			x.pass(20 * time.Microsecond)
			return x.clock()
		}
	})
	w.Scan()
	for begun := x.clock(); x.clock().Sub(begun) < 2*startingPatience; {
		x.pass(w.untilRetry())
		w.retry()
	}
	w.Scan()
	if n := x.told(RingRefused); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
}

// Rings come and go while rounds look at them, which locks none of them.
func TestRoundsWhileRingsComeAndGo(t *testing.T) {
	x := newWorld(t)
	w := x.watcher(nil)
	var rounds sync.WaitGroup
	var done atomic.Bool
	rounds.Go(func() {
		for !done.Load() {
			w.Drain()
		}
	})
	const times = 50
	for i := range times {
		a := x.ring("agent", ringbuf.V4, 64<<(i%2))
		w.Scan()
		push(t, a, 1)
		w.Drain()
		if err := os.Remove(a.Path()); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	rounds.Wait()
	if got := transmitted(w)["agent"]; got != times {
		t.Errorf("%d bytes, want %d", got, times)
	}
}
