package bridge

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// What is kept of agents and kernels that are closed goes with the provider,
// and doesn't keep it.
func TestLedgersGoWithTheirProvider(t *testing.T) {
	var listed weak.Pointer[ledger[agentInstruments, *agentAccount]]
	use := func() weak.Pointer[sdkmetric.MeterProvider] {
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		a, err := NewAgent("a", WithMeterProvider(provider))
		if err != nil {
			t.Fatal(err)
		}
		rt, err := NewRuntime(WithMeterProvider(provider))
		if err != nil {
			t.Fatal(err)
		}
		a.MemoryRegistered(1)
		rt.Register("k").Sent()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if agentLedgers.of(provider) != a.ledger || kernelLedgers.of(provider) != rt.ledger {
			t.Error("a provider has two ledgers")
		}
		listed = weak.Make(a.ledger)
		return weak.Make(provider)
	}
	provider := use()
	for range 10 {
		runtime.GC() // the second finds what the first has freed
	}
	if provider.Value() != nil {
		t.Error("the provider is still in use")
	}
	agentLedgers.of(sdkmetric.NewMeterProvider())
	if slices.Contains(agentLedgers.all, listed) {
		t.Error("a ledger that is gone is still listed")
	}
}
