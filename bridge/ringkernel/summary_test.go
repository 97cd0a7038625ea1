package ringkernel_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestSummary(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(2 * time.Second) // the Runtime is older than its kernels
	b, a := w.Register("b"), w.Register("a")
	for range 4 {
		a.Processed(time.Millisecond)
		b.Processed(time.Millisecond)
	}
	b.Processed(time.Millisecond)
	a.Error(errors.New("no"))
	b.Dropped()
	b.Dropped()
	w.clock.Advance(2 * time.Second)

	want := ringkernel.Summary{
		Time:                start.Add(4 * time.Second),
		Uptime:              4 * time.Second,
		KernelCount:         2,
		TotalMessages:       9,
		TotalErrors:         1,
		TotalDropped:        2,
		AggregateThroughput: 4.5,
		Kernels:             []ringkernel.Telemetry{w.telemetry(t, "a"), w.telemetry(t, "b")},
	}
	if d := cmp.Diff(want, w.Summary(), cmpopts.EquateErrors()); d != "" {
		t.Errorf("Summary() (-want +got):\n%s", d)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	w := newWorld(t)
	if d := cmp.Diff(ringkernel.Summary{Time: start}, w.Summary(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("Summary() (-want +got):\n%s", d)
	}
}

func TestGPUUtilization(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"with a GPU", true}, {"without one", false}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, ringkernel.WithGPUUtilization(func() (float64, bool) { return 0.25, tt.ok }))
			got := w.Summary()
			if tt.ok != (got.GPUUtilization != nil) || tt.ok && *got.GPUUtilization != 0.25 {
				t.Errorf("GPUUtilization = %v", got.GPUUtilization)
			}
			if printed := strings.Contains(got.String(), "GPU: 25.0%"); printed != tt.ok {
				t.Errorf("the summary reads:\n%v", got)
			}
		})
	}
}

func TestReset(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		k := w.Register(id)
		k.SetState(ringkernel.StateActive)
		k.SetQueueSize(ringkernel.InputQueue, 2)
		k.Received()
		k.Sent()
		k.Dropped()
		k.Processed(time.Second)
		k.Error(errors.New("no"))
	}
	w.clock.Advance(time.Minute)
	before := w.telemetry(t, "c")
	fresh := func(id string) ringkernel.Telemetry {
		return ringkernel.Telemetry{
			KernelID: id, State: ringkernel.StateActive, Input: ringkernel.QueueTelemetry{Size: 2},
			StartTime: w.clock.Now(), Time: w.clock.Now(),
		}
	}

	w.Reset("a", "b", "unknown")
	want := map[string]ringkernel.Telemetry{"a": fresh("a"), "b": fresh("b"), "c": before}
	if d := cmp.Diff(want, w.All(), cmpopts.EquateErrors()); d != "" {
		t.Errorf("after Reset of a and b (-want +got):\n%s", d)
	}
	w.Reset()
	want["c"] = fresh("c")
	if d := cmp.Diff(want, w.All(), cmpopts.EquateErrors()); d != "" {
		t.Errorf("after Reset of all (-want +got):\n%s", d)
	}

	// What comes next counts from 0, and the shortest latency anew.
	w.clock.Advance(time.Second)
	w.RecordReceive("a")
	w.RecordProcess("a", 2*time.Second)
	w.RecordProcess("a", 3*time.Second)
	w.clock.Advance(time.Second)
	next := fresh("a")
	next.StartTime = start.Add(time.Minute)
	next.MessagesReceived, next.MessagesProcessed = 1, 2
	next.LastMessageTime = start.Add(time.Minute + time.Second)
	next.TotalLatency, next.MinLatency, next.MaxLatency = 5*time.Second, 2*time.Second, 3*time.Second
	got := w.telemetry(t, "a")
	if d := cmp.Diff(next, got, cmpopts.EquateErrors()); d != "" {
		t.Errorf("after the reset (-want +got):\n%s", d)
	}
	if got.Uptime() != 2*time.Second || got.Throughput() != 1 {
		t.Errorf("uptime %v and throughput %v, want 2s and 1", got.Uptime(), got.Throughput())
	}
}

// Counters and histograms of a MeterProvider go on over a reset; gauges of the
// snapshot's values start anew.
func TestResetLeavesCounters(t *testing.T) {
	latencies := ringkernel.NewLatencyProducer()
	w := newWorld(t, ringkernel.WithLatencyProducer(latencies))
	k := w.Register("k")
	use := func() {
		k.Received()
		k.Sent()
		k.Dropped()
		k.Processed(time.Second)
		k.Error(errors.New("no"))
	}
	use()
	w.clock.Advance(time.Minute)
	w.Reset("k")
	w.clock.Advance(time.Second)
	use()
	got := metrictest.Values(w.collect(t))
	for series, want := range map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                     1 + 1,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                         1 + 1,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k}":                      1 + 1,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                    1 + 1,
		"ringkernel.errors{error.type=*errors.errorString,ringkernel.kernel.id=k}": 1 + 1,
		"ringkernel.uptime{ringkernel.kernel.id=k}":                                1,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
	produced, err := latencies.Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := metrictest.Values(produced[0].Metrics)["ringkernel.message.duration{ringkernel.kernel.id=k}"]; n != 2 {
		t.Errorf("the producer has %v latencies, want 2", n)
	}
}
