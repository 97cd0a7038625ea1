package metrictest

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Backend adds up what a reader collects, as a backend does. It fails the test
// if a monotonic sum decreases or ends.
type Backend struct {
	Reader   *sdkmetric.ManualReader
	Provider *sdkmetric.MeterProvider
	Sums     map[string]int64
	Others   map[string]float64 // of the last collection

	scope       string
	temporality metricdata.Temporality
	monotonic   map[string]bool
}

// NewBackend returns a Backend for one scope, and its MeterProvider.
func NewBackend(temporality metricdata.Temporality, scope string) *Backend {
	b := &Backend{
		scope: scope,
		Reader: sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(
			func(sdkmetric.InstrumentKind) metricdata.Temporality { return temporality })),
		temporality: temporality,
		Sums:        make(map[string]int64),
		monotonic:   make(map[string]bool),
	}
	b.Provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.Reader), sdkmetric.WithCardinalityLimit(-1))
	return b
}

// Collect collects and adds up.
func (b *Backend) Collect(t *testing.T) {
	t.Helper()
	before := make(map[string]int64)
	var rest []metricdata.Metrics
	for _, m := range Collect(t, b.Reader, b.scope) {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok {
			rest = append(rest, m)
			continue
		}
		for _, p := range sum.DataPoints {
			key := fmt.Sprintf("%s{%s}", m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()))
			before[key] = b.Sums[key]
			b.monotonic[key] = sum.IsMonotonic
			if b.temporality == metricdata.CumulativeTemporality {
				b.Sums[key] = 0
			}
			b.Sums[key] += p.Value
			if sum.IsMonotonic && b.Sums[key] < before[key] {
				t.Errorf("%s went back from %d to %d", key, before[key], b.Sums[key])
			}
		}
	}
	for key, n := range b.Sums {
		if _, ok := before[key]; !ok && b.monotonic[key] && n != 0 {
			t.Errorf("%s ended at %d", key, n)
		}
	}
	b.Others = Values(rest)
}

// EachTemporality runs a test with a Backend of each temporality.
func EachTemporality(t *testing.T, scope string, f func(*testing.T, *Backend)) {
	t.Helper()
	for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
		t.Run(temporality.String(), func(t *testing.T) { f(t, NewBackend(temporality, scope)) })
	}
}
