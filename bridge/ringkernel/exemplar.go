// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// exemplar is a measurement made within a sampled span.
type exemplar struct {
	number uint64 // sequence number within the Runtime
	window uint64 // the window of the measurement
	at     time.Time
	value  float64
	trace  trace.TraceID
	span   trace.SpanID
}

// slot holds the newest exemplar of a data point or, in a histogram, of a
// bucket.
type slot struct{ atomic.Pointer[exemplar] }

// exemplars holds the exemplars of a kernel, except those of its errors.
type exemplars struct {
	received, sent slot
	dropped        [queues]slot
	latencies      []slot // by bucket
}

func (e *exemplars) atReceived() *slot { return &e.received }

func (e *exemplars) atSent() *slot { return &e.sent }

func (e *exemplars) atLatency(ns int64) *slot {
	i, _ := slices.BinarySearch(latencyBounds, ns)
	return &e.latencies[i]
}

// mayHaveSpan reports whether ctx can carry a span. Searching the context takes
// longer than counting. Comparing contexts instead of types makes Sent 15% slower.
func mayHaveSpan(ctx context.Context) bool { return reflect.TypeOf(ctx) != background }

var background = reflect.TypeOf(context.Background())

// exemplify stores an exemplar if the filter selects the context. A slot only keeps
// the first one within 10 ms, so that exemplars cost little even if every span is
// sampled.
func (k *Kernel) exemplify(ctx context.Context, at func(*exemplars) *slot, value float64) {
	r := k.runtime
	span, ok := r.filter.Span(ctx)
	if !ok {
		return
	}
	all := k.exemplars.Load()
	if all == nil {
		k.exemplars.CompareAndSwap(nil, &exemplars{latencies: make([]slot, len(latencyBounds)+1)})
		all = k.exemplars.Load()
	}
	s, window := at(all), r.window.number.Load()
	if old := s.Load(); old != nil && old.window == window && !r.exactTimes {
		return
	}
	s.Store(&exemplar{
		number: r.exemplars.Add(1), window: window,
		at: r.clock(), value: value, trace: span.TraceID(), span: span.SpanID(),
	})
	if !r.exactTimes {
		r.window.arm()
	}
}

// take returns the slot's exemplar, or nothing if a Producer that has seen the
// exemplars numbered up to seen has already seen it.
func take[N int64 | float64](s *slot, seen uint64) []metricdata.Exemplar[N] {
	e := s.Load()
	if e == nil || e.number <= seen {
		return nil
	}
	return []metricdata.Exemplar[N]{{
		Time: e.at, Value: N(e.value), TraceID: slices.Clone(e.trace[:]), SpanID: slices.Clone(e.span[:]),
	}}
}

// latencyBounds are the bounds of semconv.KernelDurationBounds, in nanoseconds.
var latencyBounds = func() (ns []int64) {
	for _, s := range semconv.KernelDurationBounds() {
		ns = append(ns, time.Duration(s*float64(time.Second)+0.5).Nanoseconds())
	}
	return ns
}()
