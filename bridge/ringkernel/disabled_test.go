package ringkernel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func useEverything(rt *ringkernel.Runtime) {
	k := rt.Register("k")
	k.Received()
	k.Sent()
	k.Processed(time.Millisecond)
	k.Dropped()
	k.Error(errors.New("no"))
	k.SetState(ringkernel.StateActive)
	k.SetQueueSize(ringkernel.InputQueue, 1)
	k.SetQueueCapacity(ringkernel.InputQueue, 1)
	k.ObserveQueue(ringkernel.OutputQueue, func() (int, int) { return 1, 1 })
	rt.RecordReceive("k")
	rt.RecordSend("k")
	rt.RecordProcess("k", time.Millisecond)
	rt.RecordDrop("k")
	rt.RecordError("k", errors.New("no"))
	rt.SetState("k", ringkernel.StateActive)
	rt.SetQueueSize("k", ringkernel.InputQueue, 1)
	rt.SetQueueCapacity("k", ringkernel.InputQueue, 1)
	rt.Reset()
	rt.Reset("k")
	rt.Unregister("k")
}

func TestDisabledReportsNothing(t *testing.T) {
	latencies := ringkernel.NewLatencyProducer()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies))
	w := newWorldWith(t, reader, ringkernel.WithEnabled(false), ringkernel.WithLatencyProducer(latencies))
	useEverything(w.Runtime)
	if v := metrictest.Values(w.collect(t)); len(v) != 0 {
		t.Errorf("reported %v, want nothing", v)
	}
	if w.Enabled() {
		t.Error("Enabled() = true")
	}
}

func TestDisabledHasNoKernels(t *testing.T) {
	for name, rt := range disabledRuntimes(t) {
		useEverything(rt)
		k := rt.Register("k")
		if k != nil || k.ID() != "" {
			t.Errorf("%s: Register made kernel %q", name, k.ID())
		}
		if d := cmp.Diff(ringkernel.Summary{}, rt.Summary()); d != "" {
			t.Errorf("%s: Summary() isn't zero:\n%s", name, d)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestDisabledDoesNotAllocate(t *testing.T) {
	rt := newRuntime(t, ringkernel.WithEnabled(false))
	k := rt.Register("k")
	err := errors.New("no")
	if n := testing.AllocsPerRun(100, func() {
		k.Received()
		k.Processed(1)
		k.Error(err)
		rt.RecordSend("k")
	}); n != 0 {
		t.Errorf("a disabled Runtime allocates %v times, want 0", n)
	}
}

func TestEnabledByDefault(t *testing.T) {
	w := newWorld(t)
	if !w.Enabled() || w.Register("k").ID() != "k" {
		t.Error("a Runtime that was made without WithEnabled is disabled")
	}
}
