package ringkernel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestGlobalMeterProviderIsTheDefault(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	before := otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	newRuntime(t).Register("k").Sent()
	if got := metrictest.Values(collect(t, reader))["ringkernel.messages.sent{ringkernel.kernel.id=k}"]; got != 1 {
		t.Errorf("sent = %v, want 1", got)
	}
}

func TestClose(t *testing.T) {
	latencies := ringkernel.NewLatencyProducer()
	w := newWorldWith(t, sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies)),
		ringkernel.WithLatencyProducer(latencies))
	use(w, "k")
	if len(w.collect(t)) == 0 {
		t.Fatal("nothing is reported before Close")
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	use(w, "k")
	want := map[string]float64{
		"ringkernel.messages.received{ringkernel.kernel.id=k}":                     2,
		"ringkernel.messages.sent{ringkernel.kernel.id=k}":                         1,
		"ringkernel.messages.processed{ringkernel.kernel.id=k}":                    2,
		"ringkernel.messages.dropped{ringkernel.kernel.id=k}":                      1,
		"ringkernel.errors{error.type=*errors.errorString,ringkernel.kernel.id=k}": 1,
	}
	if d := cmp.Diff(want, metrictest.Values(w.collect(t))); d != "" {
		t.Errorf("reported after Close, which ends all but the counters (-want +got):\n%s", d)
	}
	if s := w.telemetry(t, "k"); s.MessagesSent != 2 {
		t.Errorf("sent %d after Close, want 2", s.MessagesSent)
	}
}

// refusing is a provider that makes no up-down counters and no callbacks.
type refusing struct {
	noop.MeterProvider
	callbacks bool // refuses only these
}

type refusingMeter struct {
	noop.Meter
	callbacks bool
}

var errRefused = errors.New("refused")

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{callbacks: r.callbacks}
}

func (r refusingMeter) Int64ObservableUpDownCounter(
	string, ...metric.Int64ObservableUpDownCounterOption,
) (metric.Int64ObservableUpDownCounter, error) {
	if r.callbacks {
		return noop.Int64ObservableUpDownCounter{}, nil
	}
	return nil, errRefused
}

func (r refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errRefused
}

func TestNewRuntimeNamesWhatIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		provider refusing
		want     []string
	}{
		"instruments": {refusing{}, []string{
			"ringkernel.queue.size", "ringkernel.queue.capacity", "ringkernel.kernel.status",
		}},
		"callback": {refusing{callbacks: true}, []string{"callback"}},
	} {
		t.Run(name, func(t *testing.T) {
			rt, err := ringkernel.NewRuntime(ringkernel.WithMeterProvider(tt.provider))
			if rt != nil || !errors.Is(err, errRefused) {
				t.Fatalf("NewRuntime = %v, %v; want the provider's error", rt, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q doesn't name %s", err, want)
				}
			}
		})
	}
}
