package ringkernel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/ledger"
)

// Runtime collects the telemetry of the kernels that are registered with it,
// and reports it through a MeterProvider.
//
// All methods are safe for concurrent use. A nil *Runtime is a disabled one:
// it registers nothing, reports nothing and its snapshots are empty.
type Runtime struct {
	enabled        bool
	clock          func() time.Time
	exactTimes     bool // the clock is read for every message
	start          time.Time
	attributes     []attribute.KeyValue
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
	latencies      *LatencyProducer

	ledger       *ledger.Ledger[counters, *account]
	instruments  instruments
	registration metric.Registration

	window   window
	mu       sync.Mutex // of who changes the registry
	registry atomic.Pointer[registry]

	closed   atomic.Bool // set while mu is held
	closing  sync.Once
	closeErr error
}

// NewRuntime makes a Runtime and its instruments. An error is that of an
// instrument which the provider refuses; it names the instrument.
//
// Close it after the MeterProvider, so that what came last is still collected.
func NewRuntime(opts ...Option) (*Runtime, error) {
	c := newConfig(opts)
	r := &Runtime{
		enabled:        c.enabled,
		clock:          c.clock,
		exactTimes:     c.clock != nil,
		attributes:     c.attributes,
		errorType:      c.errorType,
		gpuUtilization: c.gpuUtilization,
	}
	if !c.enabled {
		return r, nil
	}
	if r.clock == nil {
		r.clock = time.Now
	}
	r.start = r.now()
	r.registry.Store(&registry{})
	r.window.init()
	if err := r.report(c); err != nil {
		return nil, err
	}
	return r, nil
}

// report makes the instruments and has them observed.
func (r *Runtime) report(c config) error {
	var (
		observed []metric.Observable
		err      error
	)
	r.instruments, observed, err = newInstruments(c)
	r.ledger = ledgers.Of(c.provider)
	_, countersErr := r.ledger.Report(newCounters)
	if err := errors.Join(err, countersErr); err != nil {
		return err
	}
	r.registration, err = c.provider.Meter(ScopeName).RegisterCallback(r.observe, observed...)
	if err != nil {
		return fmt.Errorf("register the callback of the ring kernels' instruments: %w", err)
	}
	if c.latencies != nil {
		r.latencies = c.latencies
		r.latencies.add(r)
	}
	return nil
}

// Enabled says whether the Runtime collects anything.
func (r *Runtime) Enabled() bool { return r != nil && r.enabled }

// Close ends the reporting. Kernels can still be used and snapshots be taken,
// but no reader collects what they count, and the clock is read for every
// message.
//
// Counters stay as they are, as a counter that goes back, or ends while its
// provider goes on, is one that backends take for a new one: the provider
// reports them for as long as it lives, and a kernel of the same attributes,
// of another Runtime, counts on from there. That is kept of the newest 1000
// kernels that aren't registered any more.
//
// Close can be called again: it returns what it returned the first time.
func (r *Runtime) Close() error {
	if !r.Enabled() {
		return nil
	}
	r.closing.Do(func() {
		var errs []error
		r.leave()
		if err := r.registration.Unregister(); err != nil {
			errs = append(errs, fmt.Errorf("unregister the callback of the ring kernels' instruments: %w", err))
		}
		if r.latencies != nil {
			r.latencies.remove(r)
		}
		r.window.stop()
		r.closeErr = errors.Join(errs...)
	})
	return r.closeErr
}

// leave hands what all kernels counted over to the ledger.
func (r *Runtime) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed.Store(true)
	reg := r.registry.Load()
	for _, k := range slices.AppendSeq(slices.Clone(reg.retired), maps.Values(reg.live)) {
		r.ledger.Leave(k.account, func(a *account) { a.settle(k) })
	}
}

func (r *Runtime) now() time.Time { return r.clock() }
