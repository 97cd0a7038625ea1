package ringkernel_test

import (
	"fmt"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestStates(t *testing.T) {
	names := map[ringkernel.State]string{
		ringkernel.StateCreated:     "created",
		ringkernel.StateLaunched:    "launched",
		ringkernel.StateActive:      "active",
		ringkernel.StateDeactivated: "deactivated",
		ringkernel.StateTerminating: "terminating",
		ringkernel.StateTerminated:  "terminated",
		ringkernel.State(6):         "State(6)",
	}
	for s, want := range names {
		if got := s.String(); got != want {
			t.Errorf("State(%d).String() = %q, want %q", uint8(s), got, want)
		}
	}
}

func TestQueueNames(t *testing.T) {
	for q, want := range map[ringkernel.Queue]string{
		ringkernel.InputQueue: "input", ringkernel.OutputQueue: "output", ringkernel.Queue(2): "Queue(2)",
	} {
		if got := q.String(); got != want {
			t.Errorf("Queue(%d).String() = %q, want %q", uint8(q), got, want)
		}
	}
}

// The status is 1 for the state that the kernel is in and 0 for the rest.
func TestStatus(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	all := []ringkernel.State{
		ringkernel.StateCreated, ringkernel.StateLaunched, ringkernel.StateActive,
		ringkernel.StateDeactivated, ringkernel.StateTerminating, ringkernel.StateTerminated,
	}
	for _, in := range all {
		k.SetState(in)
		got := metrictest.Values(w.collect(t))
		for _, s := range all {
			series := fmt.Sprintf("ringkernel.kernel.status{ringkernel.kernel.id=k,ringkernel.kernel.state=%v}", s)
			want := 0.0
			if s == in {
				want = 1
			}
			if v, ok := got[series]; !ok || v != want {
				t.Errorf("in %v: %s = %v, want %v", in, series, v, want)
			}
		}
	}
}

func TestRegisterIsIdempotent(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	k.SetState(ringkernel.StateActive)
	k.Sent()
	w.clock.Advance(time.Second)
	if again := w.Register("k"); again != k {
		t.Error("Register of a registered id made another kernel")
	}
	if s := w.telemetry(t, "k"); s.MessagesSent != 1 || s.State != ringkernel.StateActive || s.StartTime != start {
		t.Errorf("Register of a registered id changed it: %+v", s)
	}
}

func TestUptimeIsPerKernel(t *testing.T) {
	w := newWorld(t)
	w.Register("old")
	w.clock.Advance(time.Minute)
	w.Register("new")
	w.clock.Advance(time.Second)
	if up := w.telemetry(t, "old").Uptime(); up != time.Minute+time.Second {
		t.Errorf("old is up for %v, want 1m1s", up)
	}
	if up := w.telemetry(t, "new").Uptime(); up != time.Second {
		t.Errorf("new is up for %v, want 1s", up)
	}
}

func TestUnregister(t *testing.T) {
	w := newWorld(t, ringkernel.WithDerivedMetrics(true))
	k := w.Register("k")
	read := 0
	k.ObserveQueue(ringkernel.InputQueue, func() (int, int) { read++; return 0, 0 })
	k.Sent()
	w.Unregister("unknown")
	w.Unregister("k")
	w.Unregister("k")
	if s := w.Summary(); s.KernelCount != 0 {
		t.Errorf("the summary has %d kernels, want none", s.KernelCount)
	}
	if _, ok := w.Telemetry("k"); ok {
		t.Error("Telemetry of an unregistered kernel is there")
	}
	// Counters that weren't collected yet are, gauges end.
	for series := range metrictest.Values(w.collect(t)) {
		switch series {
		case "ringkernel.messages.received{ringkernel.kernel.id=k}",
			"ringkernel.messages.sent{ringkernel.kernel.id=k}",
			"ringkernel.messages.processed{ringkernel.kernel.id=k}",
			"ringkernel.messages.dropped{ringkernel.kernel.id=k}":
		default:
			t.Errorf("%s is reported of an unregistered kernel", series)
		}
	}
	if read > 0 {
		t.Error("the queue of an unregistered kernel was read")
	}
}

// An id that comes back starts anew, but its counters go on: no series goes
// back, and none counts twice, whatever the temporality.
func TestRegisterAgain(t *testing.T) {
	const sent = "ringkernel.messages.sent{ringkernel.kernel.id=k}"
	for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
		t.Run(temporality.String(), func(t *testing.T) {
			w := newWorldWith(t, sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(
				func(sdkmetric.InstrumentKind) metricdata.Temporality { return temporality })))
			var total float64
			see := func(cumulative float64) {
				t.Helper()
				v := metrictest.Values(w.collect(t))[sent]
				if temporality == metricdata.DeltaTemporality {
					total += v
					v = total
				}
				if v != cumulative {
					t.Errorf("sent %v, want %v", v, cumulative)
				}
			}
			k := w.Register("k")
			k.SetState(ringkernel.StateTerminated)
			k.Sent()
			k.Sent()
			see(2)
			w.Unregister("k")
			see(2)
			k.Sent() // the last of a kernel that is on its way out
			see(3)
			w.clock.Advance(time.Second)
			w.Register("k").Sent()
			see(4)
			s := w.telemetry(t, "k")
			if s.MessagesSent != 1 || s.State != ringkernel.StateCreated || s.StartTime != start.Add(time.Second) {
				t.Errorf("the kernel didn't start anew: %+v", s)
			}
		})
	}
}

// Kernels that come and go under ever new ids don't pile up.
func TestUnregisteredKernelsAreBounded(t *testing.T) {
	w := newWorldWith(t, sdkmetric.NewManualReader(sdkmetric.WithCardinalityLimitSelector(
		func(sdkmetric.InstrumentKind) (int, bool) { return 0, false })))
	for i := range 1200 {
		id := fmt.Sprint(i)
		w.Register(id).Sent()
		w.Unregister(id)
	}
	got := metrictest.Values([]metricdata.Metrics{metrictest.Find(t, w.collect(t), "ringkernel.messages.sent")})
	if len(got) != 1000 {
		t.Errorf("%d unregistered kernels are reported, want 1000", len(got))
	}
	if _, ok := got["ringkernel.messages.sent{ringkernel.kernel.id=1199}"]; !ok {
		t.Error("the newest is not among them")
	}
}
