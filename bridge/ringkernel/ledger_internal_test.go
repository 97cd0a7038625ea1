package ringkernel

import (
	"runtime"
	"testing"
	"weak"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// The counts of closed Runtimes don't keep their MeterProvider alive.
func TestCountsAreReleasedWithTheirProvider(t *testing.T) {
	use := func() weak.Pointer[sdkmetric.MeterProvider] {
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		rt, err := NewRuntime(WithMeterProvider(provider))
		if err != nil {
			t.Fatal(err)
		}
		rt.Register("k").Sent()
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if ledgers.Of(provider) != rt.ledger {
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
