package ringkernel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// Kernels of a closed Runtime leave their counts to those of the same
// attributes, whether they were unregistered before or not.
func TestRuntimeAgain(t *testing.T) {
	metrictest.EachTemporality(t, ringkernel.ScopeName, func(t *testing.T, b *metrictest.Backend) {
		var want float64
		for i := range 3 {
			rt, err := ringkernel.NewRuntime(ringkernel.WithMeterProvider(b.Provider))
			if err != nil {
				t.Fatal(err)
			}
			k, gone := rt.Register("k"), rt.Register("gone")
			for range 10 - 3*i {
				k.Received()
				gone.Received()
				want++
			}
			k.Sent()
			k.Dropped()
			k.Processed(us)
			k.Error(codeError{"timeout"})
			rt.Unregister("gone")
			if s, _ := rt.Telemetry("k"); s.MessagesReceived != int64(10-3*i) {
				t.Errorf("the snapshot of Runtime %d has %d messages", i, s.MessagesReceived)
			}
			n := float64(i + 1)
			see := func() {
				t.Helper()
				b.Collect(t)
				if d := cmp.Diff(map[string]float64{
					"ringkernel.messages.received{ringkernel.kernel.id=k}":         want,
					"ringkernel.messages.received{ringkernel.kernel.id=gone}":      want,
					"ringkernel.messages.sent{ringkernel.kernel.id=k}":             n,
					"ringkernel.messages.dropped{ringkernel.kernel.id=k}":          n,
					"ringkernel.messages.processed{ringkernel.kernel.id=k}":        n,
					"ringkernel.errors{error.type=timeout,ringkernel.kernel.id=k}": n,
				}, counters(b)); d != "" {
					t.Errorf("values (-want +got):\n%s", d)
				}
			}
			see()
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			closed := &world{Runtime: rt, clock: metrictest.NewClock()}
			use(closed, "k") // too late
			use(closed, "later")
			see()
		}
	})
}

// counters are those of kernels that aren't 0.
func counters(b *metrictest.Backend) map[string]float64 {
	all := make(map[string]float64)
	for key, n := range b.Sums {
		if n != 0 && (strings.HasPrefix(key, "ringkernel.messages") || strings.HasPrefix(key, "ringkernel.errors")) {
			all[key] = float64(n)
		}
	}
	return all
}

// A kernel that is pushed out of a Runtime's unregistered ones leaves the sum
// as it is where another Runtime has its id.
func TestPushedOutKernelOfTwoRuntimes(t *testing.T) {
	b := metrictest.NewBackend(metricdata.CumulativeTemporality, ringkernel.ScopeName)
	one, two := newRuntime(t, ringkernel.WithMeterProvider(b.Provider)), newRuntime(t, ringkernel.WithMeterProvider(b.Provider))
	two.Register("k").Sent()
	for i := range 1001 {
		id := fmt.Sprint(i)
		if i == 0 {
			id = "k"
		}
		one.Register(id).Sent()
		one.Unregister(id)
	}
	b.Collect(t)
	if n := b.Sums["ringkernel.messages.sent{ringkernel.kernel.id=k}"]; n != 2 {
		t.Errorf("sent %d, want 2", n)
	}
}

// Whatever is closed and made while readers collect, no sum goes back, none
// counts twice, and nothing is lost.
func TestRuntimesConcurrentSafe(t *testing.T) {
	metrictest.EachTemporality(t, ringkernel.ScopeName, func(t *testing.T, b *metrictest.Backend) {
		const workers, lives = 4, 100
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for range lives {
					rt := newRuntime(t, ringkernel.WithMeterProvider(b.Provider))
					k := rt.Register("k")
					k.Sent()
					k.Error(codeError{fmt.Sprint(w)})
					if w%2 == 0 {
						rt.Unregister("k")
					}
					if err := rt.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			working.Wait()
			close(done)
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			b.Collect(t)
		}
		const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"
		if n := b.Sums[sent]; n != workers*lives {
			t.Errorf("%s is %d, want %d", sent, n, workers*lives)
		}
		for w := range workers {
			key := fmt.Sprintf("ringkernel.errors{error.type=%d,ringkernel.kernel.id=k}", w)
			if n := b.Sums[key]; n != lives {
				t.Errorf("%s is %d, want %d", key, n, lives)
			}
		}
	})
}
