package ledger

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

type nothing struct{ set attribute.Set }

func (n *nothing) Key() attribute.Distinct          { return n.set.Equivalent() }
func (*nothing) InUse() bool                        { return false }
func (*nothing) Empty() bool                        { return true }
func (*nothing) Observe(metric.Observer, *struct{}) {}

// A provider has one ledger, and the list of ledgers drops it with the
// provider.
func TestLedgersAreReleasedWithTheirProvider(t *testing.T) {
	ledgers := Ledgers[struct{}, *nothing]{Scope: "test", Most: 1}
	use := func() weak.Pointer[Ledger[struct{}, *nothing]] {
		provider := sdkmetric.NewMeterProvider()
		l := ledgers.Of(provider)
		if ledgers.Of(provider) != l {
			t.Error("a provider has two ledgers")
		}
		if ledgers.Of(sdkmetric.NewMeterProvider()) == l {
			t.Error("two providers have one ledger")
		}
		return weak.Make(l)
	}
	listed := use()
	for range 10 {
		runtime.GC() // the second finds what the first has freed
	}
	ledgers.Of(sdkmetric.NewMeterProvider())
	if slices.Contains(ledgers.all, listed) {
		t.Error("a released ledger is still listed")
	}
}
