package ringkernel_test

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

const us = time.Microsecond

var start = metrictest.Start

// world is a Runtime, its clock and a reader of what it reports.
type world struct {
	*ringkernel.Runtime
	clock  *metrictest.Clock
	reader *sdkmetric.ManualReader
}

// newWorld makes a world. The options come after the world's own.
func newWorld(t *testing.T, opts ...ringkernel.Option) *world {
	t.Helper()
	return newWorldWith(t, sdkmetric.NewManualReader(), opts...)
}

func newWorldWith(t *testing.T, reader *sdkmetric.ManualReader, opts ...ringkernel.Option) *world {
	t.Helper()
	w := &world{clock: metrictest.NewClock(), reader: reader}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	w.Runtime = newRuntime(t, append([]ringkernel.Option{
		ringkernel.WithMeterProvider(provider), ringkernel.WithClock(w.clock.Now),
	}, opts...)...)
	return w
}

func newRuntime(t *testing.T, opts ...ringkernel.Option) *ringkernel.Runtime {
	t.Helper()
	rt, err := ringkernel.NewRuntime(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return rt
}

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, reader, ringkernel.ScopeName)
}

func (w *world) collect(t *testing.T) []metricdata.Metrics {
	t.Helper()
	return collect(t, w.reader)
}

// telemetry is the snapshot of a kernel that must be there.
func (w *world) telemetry(t *testing.T, id string) ringkernel.Telemetry {
	t.Helper()
	s, ok := w.Telemetry(id)
	if !ok {
		t.Fatalf("no telemetry of %q", id)
	}
	return s
}
