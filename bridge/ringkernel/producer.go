// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"sync"
	"time"
	"weak"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/uncollected"
)

// ScopeName is the name of the instrumentation scope for the metrics of ring
// kernels. The scope's version is the version of this module.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/ringkernel"

// Producer passes the metrics of a Runtime to one reader of the SDK.
// [Runtime.NewProducer] creates it.
type Producer struct {
	runtime *Runtime
	config  producerConfig
	waiting *uncollected.Timer // for the first collection

	collecting sync.Mutex // guards what follows
	seen       uint64     // number of exemplars that the reader collected
	reported   *reported  // with delta temporality, the totals at the last collection

	departed map[string]departed // by ID; guarded by the Runtime's lock
}

var _ sdkmetric.Producer = (*Producer)(nil)

// departed is an unregistered kernel, and the number of collections that still
// report it.
type departed struct {
	kernel *Kernel
	more   int
}

const (
	// extraCollections is the number of collections that report a kernel after it
	// was unregistered. One is not enough if an export fails.
	extraCollections = 2
	// maxDeparted bounds the memory for unregistered kernels if the reader doesn't
	// collect. Beyond it, each kernel replaces another one, whose last counts are
	// lost.
	maxDeparted = 10_000
)

// ProducerOption configures a [Producer].
type ProducerOption interface {
	apply(producerConfig) producerConfig
}

type producerOption func(producerConfig) producerConfig

func (f producerOption) apply(c producerConfig) producerConfig { return f(c) }

type producerConfig struct{ exponential, delta bool }

// WithExponentialHistogram reports latencies as an exponential histogram with up
// to 160 buckets, instead of a histogram with the bounds of
// semconv.KernelDurationBounds.
func WithExponentialHistogram() ProducerOption {
	return producerOption(func(c producerConfig) producerConfig {
		c.exponential = true
		return c
	})
}

// WithDeltaTemporality reports counters and the histogram as deltas since the
// reader's last collection. The histogram then has neither minimum nor maximum.
// Up-down counters stay cumulative.
func WithDeltaTemporality() ProducerOption {
	return producerOption(func(c producerConfig) producerConfig {
		c.delta = true
		return c
	})
}

// NewProducer returns a Producer. Pass it to a reader:
//
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(rt.NewProducer()))
//
// Each reader needs its own Producer, which keeps track of the reader's
// collections. If no reader collects within 2 minutes, the Producer passes an
// error to OpenTelemetry's error handler. The Producer of a nil Runtime produces
// nothing.
func (r *Runtime) NewProducer(opts ...ProducerOption) *Producer {
	p := &Producer{runtime: r, departed: make(map[string]departed)}
	if r == nil {
		return p
	}
	for _, o := range opts {
		p.config = o.apply(p.config)
	}
	p.waiting = uncollected.Start("ring kernels", time.Now, otel.Handle)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.producers = append(r.producers, weak.Make(p))
	return p
}

// Produce returns the metrics of all kernels. The reader calls it at each
// collection. It doesn't block and ignores the context. The error is always nil.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	r := p.runtime
	if r == nil {
		return nil, nil
	}
	p.waiting.Collected()
	p.collecting.Lock()
	defer p.collecting.Unlock()
	exemplars := r.exemplars.Load() // the next collection reports later ones
	live, gone := p.kernels()
	now := r.clock()
	r.lastProduced.advance(now)

	c := &collection{now: now, seen: p.seen, exponential: p.config.exponential, derived: r.derived}
	if p.config.delta {
		c.before, c.after = p.reported, newReported(now)
		p.reported = c.after
	}
	c.reserve(len(live), len(gone))
	for _, k := range live {
		c.addCounters(k)
		c.addGauges(k)
	}
	for _, k := range gone {
		c.addCounters(k)
	}
	p.seen = exemplars
	metrics := c.metrics()
	if len(metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: ScopeName, Version: scope.Version()},
		Metrics: metrics,
	}}, nil
}

// kernels returns the registered kernels and the departed ones that are still
// reported, and counts down the remaining collections of the latter.
func (p *Producer) kernels() (live, gone []*Kernel) {
	r := p.runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	live = make([]*Kernel, 0, len(r.kernels))
	for _, k := range r.kernels {
		live = append(live, k)
	}
	rest := make(map[string]departed)
	for id, d := range p.departed {
		gone = append(gone, d.kernel)
		if d.more--; d.more > 0 {
			rest[id] = d
		}
	}
	p.departed = rest
	return live, gone
}

// depart adds an unregistered kernel. The caller holds the Runtime's lock.
func (p *Producer) depart(k *Kernel) {
	if len(p.departed) >= maxDeparted {
		for id := range p.departed {
			delete(p.departed, id)
			break
		}
	}
	p.departed[k.id] = departed{k, extraCollections}
}

// takeBack removes the departed kernel with an ID and returns it, or nil if there
// is none. The caller holds the Runtime's lock.
func (p *Producer) takeBack(id string) *Kernel {
	k := p.departed[id].kernel
	delete(p.departed, id)
	return k
}
