package agent

import (
	"runtime"
	"testing"
	"weak"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// The counts of closed agents don't keep their MeterProvider alive.
func TestCountsAreReleasedWithTheirProvider(t *testing.T) {
	use := func() weak.Pointer[sdkmetric.MeterProvider] {
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		a, err := New("a", WithMeterProvider(provider))
		if err != nil {
			t.Fatal(err)
		}
		a.MemoryRegistered(1)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if ledgers.Of(provider) != a.ledger {
			t.Error("a provider has two ledgers")
		}
		return weak.Make(provider)
	}
	provider := use()
	for range 10 {
		runtime.GC() // the second finds what the first has freed
	}
	if provider.Value() != nil {
		t.Error("the provider is still in use")
	}
}
