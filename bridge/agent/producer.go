// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/uncollected"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Producer passes the metrics of agents to a reader of the SDK. It is safe for
// concurrent use.
//
// The MeterProvider's views and exemplar filter don't apply to its metrics. The
// temporality is always cumulative, regardless of the reader. Several readers can
// share a Producer; each exemplar goes to the first reader that collects.
type Producer struct {
	waiting     *uncollected.Timer // for the first collection
	sizeClasses bool

	mu       sync.Mutex // guards what follows, and the accounts
	accounts map[attribute.Distinct]*account
	idle     int // accounts without open agents
}

var _ sdkmetric.Producer = (*Producer)(nil)

// NewProducer returns a Producer. Pass it to a reader and to the agents that
// report through it:
//
//	producer := agent.NewProducer()
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//	...
//	a, err := agent.New("decode-0", agent.WithProducer(producer))
//
// If no reader collects within 2 minutes, the Producer passes an error to
// OpenTelemetry's error handler. [Agent.Close] does so after 1 minute.
func NewProducer(opts ...ProducerOption) *Producer {
	p := &Producer{
		waiting:  uncollected.Start("agents", time.Now, otel.Handle),
		accounts: make(map[attribute.Distinct]*account),
	}
	for _, o := range opts {
		o.configure(p)
	}
	return p
}

// ProducerOption configures a [Producer].
type ProducerOption interface {
	configure(*Producer)
}

type producerOptionFunc func(*Producer)

func (f producerOptionFunc) configure(p *Producer) { f(p) }

// WithSizeClasses adds the attribute nixl.transfer.size_class, the size class of
// each transfer, to the duration histograms.
func WithSizeClasses() ProducerOption {
	return producerOptionFunc(func(p *Producer) { p.sizeClasses = true })
}

// Produce returns the metrics of all agents. Readers call it at each collection.
// It doesn't block and ignores the context. The error is always nil.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.waiting.Collected()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := newCollection()
	for key, a := range p.accounts {
		now := a.clock()
		if !a.settle(now) {
			delete(p.accounts, key)
			p.idle--
			continue
		}
		a.collect(c, now)
	}
	metrics := c.metrics()
	if len(metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: semconv.ScopeName, Version: semconv.Version, SchemaURL: semconv.SchemaURL},
		Metrics: metrics,
	}}, nil
}

// join adds a series to the account for a set of attributes.
func (p *Producer) join(set attribute.Set, s *series) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[set.Equivalent()]
	switch {
	case a == nil:
		a = newAccount(set, s.clock)
		p.accounts[set.Equivalent()] = a
	case len(a.open) == 0:
		p.idle--
	}
	a.join(s)
}

// leave closes series.
func (p *Producer) leave(all []*series) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range all {
		if s.account.leave(s); len(s.account.open) == 0 {
			p.idle++
		}
	}
	if p.idle > maxClosed {
		p.evict()
	}
}

// maxClosed bounds the memory for closed agents that haven't expired. Each takes
// 10 KB.
const maxClosed = 2000

// evict removes the older half of the idle accounts. Removing half of them at once
// amortizes the sort.
func (p *Producer) evict() {
	idle := slices.DeleteFunc(slices.Collect(maps.Values(p.accounts)), func(a *account) bool { return len(a.open) > 0 })
	slices.SortFunc(idle, func(a, b *account) int { return a.until().Compare(b.until()) })
	for _, a := range idle[:len(idle)/2] {
		delete(p.accounts, a.set.Equivalent())
		p.idle--
	}
}
