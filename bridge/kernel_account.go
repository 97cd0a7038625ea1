package bridge

import (
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// kernelAccount is what kernels count that have the same attributes: those of
// one id, of one Runtime after another or of several at a time.
type kernelAccount struct {
	points  points
	errors  errorCounts
	past    totals    // of kernels whose Runtime is closed
	kernels []*Kernel // of the others
}

type kernelLedger = ledger[counters, *kernelAccount]

var kernelLedgers = ledgers[counters, *kernelAccount]{most: maxRetired}

// counters are the instruments of a ledger of kernels.
type counters struct {
	received, sent, processed, dropped, errors metric.Int64ObservableCounter
}

func newCounters(meter metric.Meter) (counters, []metric.Observable, error) {
	m := maker{meter: meter}
	c := counters{
		received:  m.counter(semconv.KernelMessagesReceived),
		sent:      m.counter(semconv.KernelMessagesSent),
		processed: m.counter(semconv.KernelMessagesProcessed),
		dropped:   m.counter(semconv.KernelMessagesDropped),
		errors:    m.counter(semconv.KernelErrors),
	}
	return c, m.observed, errors.Join(m.errs...)
}

// enter gives a new kernel its account. That of a closed Runtime has one of its
// own, which nobody reads.
func (r *Runtime) enter(k *Kernel) {
	p := newPoints(r.attributes, k.id)
	create := func() *kernelAccount { return &kernelAccount{points: p} }
	if r.closed.Load() {
		k.account = create()
	} else {
		r.ledger.join(p.set, create, func(a *kernelAccount) {
			a.kernels = append(a.kernels, k)
			k.account = a
		})
	}
	k.points = k.account.points
}

// settle takes a kernel out of its account, which keeps what it counted.
func (a *kernelAccount) settle(k *Kernel) {
	a.kernels = slices.DeleteFunc(a.kernels, func(o *Kernel) bool { return o == k })
	a.past = a.past.plus(k.totals())
}

func (a *kernelAccount) key() attribute.Distinct { return a.points.set.Equivalent() }

func (a *kernelAccount) inUse() bool { return len(a.kernels) > 0 }

func (a *kernelAccount) empty() bool { return a.past == (totals{}) }

// observe gives the totals since the account's beginning. Reset doesn't show
// here, as a counter must not go back.
func (a *kernelAccount) observe(o metric.Observer, c *counters) {
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
