package bridge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge"
)

func useEverything(rt *bridge.Runtime) {
	k := rt.Register("k")
	k.Received()
	k.Sent()
	k.Processed(time.Millisecond)
	k.Dropped()
	k.Error(errors.New("no"))
	k.SetState(bridge.StateActive)
	k.SetQueueSize(bridge.InputQueue, 1)
	k.SetQueueCapacity(bridge.InputQueue, 1)
	k.ObserveQueue(bridge.OutputQueue, func() (int, int) { return 1, 1 })
	rt.RecordReceive("k")
	rt.RecordSend("k")
	rt.RecordProcess("k", time.Millisecond)
	rt.RecordDrop("k")
	rt.RecordError("k", errors.New("no"))
	rt.SetState("k", bridge.StateActive)
	rt.SetQueueSize("k", bridge.InputQueue, 1)
	rt.SetQueueCapacity("k", bridge.InputQueue, 1)
	rt.Reset()
	rt.Reset("k")
	rt.Unregister("k")
}

func TestP8DisabledReportsNothing(t *testing.T) {
	latencies := bridge.NewLatencyProducer()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies))
	w := newWorldWith(t, reader, bridge.WithEnabled(false), bridge.WithLatencyProducer(latencies))
	useEverything(w.Runtime)
	if v := values(w.collect(t)); len(v) != 0 {
		t.Errorf("reported %v, want nothing", v)
	}
	if w.Enabled() {
		t.Error("Enabled() = true")
	}
}

func TestP8DisabledHasNoKernels(t *testing.T) {
	for name, rt := range disabledRuntimes(t) {
		useEverything(rt)
		k := rt.Register("k")
		if k != nil || k.ID() != "" {
			t.Errorf("%s: Register made kernel %q", name, k.ID())
		}
		if d := cmp.Diff(bridge.Summary{}, rt.Summary()); d != "" {
			t.Errorf("%s: Summary() isn't zero:\n%s", name, d)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestP8DisabledDoesNotAllocate(t *testing.T) {
	rt := newRuntime(t, bridge.WithEnabled(false))
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

func TestP8EnabledByDefault(t *testing.T) {
	w := newWorld(t)
	if !w.Enabled() || w.Register("k").ID() != "k" {
		t.Error("a Runtime that was made without WithEnabled is disabled")
	}
}
