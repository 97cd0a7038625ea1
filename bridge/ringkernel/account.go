package ringkernel

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/instrument"
	"github.com/nixl-otel/nixl-otel/bridge/internal/ledger"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// account is what kernels count that have the same attributes: those of
// one id, of one Runtime after another or of several at a time.
type account struct {
	points  points
	errors  errorCounts
	past    totals    // of kernels whose Runtime is closed
	kernels []*Kernel // of the others
}

var ledgers = ledger.Ledgers[counters, *account]{Scope: ScopeName, Most: maxRetired}

// counters are the instruments of a ledger of kernels.
type counters struct {
	received, sent, processed, dropped, errors metric.Int64ObservableCounter
}

func newCounters(meter metric.Meter) (counters, []metric.Observable, error) {
	m := instrument.NewMaker(meter)
	c := counters{
		received:  m.Counter(semconv.KernelMessagesReceived),
		sent:      m.Counter(semconv.KernelMessagesSent),
		processed: m.Counter(semconv.KernelMessagesProcessed),
		dropped:   m.Counter(semconv.KernelMessagesDropped),
		errors:    m.Counter(semconv.KernelErrors),
	}
	return c, m.Observed(), m.Err()
}

// enter gives a new kernel its account. That of a closed Runtime has one of its
// own, which nobody reads.
func (r *Runtime) enter(k *Kernel) {
	p := newPoints(r.attributes, k.id)
	create := func() *account { return &account{points: p} }
	if r.closed.Load() {
		k.account = create()
	} else {
		r.ledger.Join(p.set, create, func(a *account) {
			a.kernels = append(a.kernels, k)
			k.account = a
		})
	}
	k.points = k.account.points
}

// settle takes a kernel out of its account, which keeps what it counted.
func (a *account) settle(k *Kernel) {
	a.kernels = slices.DeleteFunc(a.kernels, func(o *Kernel) bool { return o == k })
	a.past = a.past.plus(k.totals())
}

func (a *account) Key() attribute.Distinct { return a.points.set.Equivalent() }

func (a *account) InUse() bool { return len(a.kernels) > 0 }

func (a *account) Empty() bool { return a.past == (totals{}) }

// Observe gives the totals since the account's beginning. Reset doesn't show
// here, as a counter must not go back.
func (a *account) Observe(o metric.Observer, c *counters) {
	t := a.past
	for _, k := range a.kernels {
		t = t.plus(k.totals())
	}
	o.ObserveInt64(c.received, t.received, a.points.kernel)
	o.ObserveInt64(c.sent, t.sent, a.points.kernel)
	o.ObserveInt64(c.processed, t.processed, a.points.kernel)
	o.ObserveInt64(c.dropped, t.dropped, a.points.kernel)
	a.errors.observe(o, c.errors)
}
