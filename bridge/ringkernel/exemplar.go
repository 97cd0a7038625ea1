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
	number uint64 // counts the exemplars of the Runtime
	window uint64 // in which it was taken
	at     time.Time
	value  float64
	trace  trace.TraceID
	span   trace.SpanID
}

// slot holds the newest exemplar of a data point or, in a histogram, of a
// bucket.
type slot struct{ atomic.Pointer[exemplar] }

// exemplars are those of a kernel, but for its errors.
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

// mayHaveSpan reports whether it is worth looking for a span, which takes longer
// than counting does. To compare types is faster than to compare contexts, which
// makes Sent 15 % slower.
func mayHaveSpan(ctx context.Context) bool { return reflect.TypeOf(ctx) != background }

var background = reflect.TypeOf(context.Background())

// exemplify keeps an exemplar if the filter selects the context. Of several within
// 10 ms, a slot keeps the first, so a program whose spans are all sampled doesn't
// pay for each.
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

// take returns the slot's exemplar as a list, which is empty if a Producer that
// has seen so many exemplars has seen this one.
func take[N int64 | float64](s *slot, seen uint64) []metricdata.Exemplar[N] {
	e := s.Load()
	if e == nil || e.number <= seen {
		return nil
	}
	return []metricdata.Exemplar[N]{{
		Time: e.at, Value: N(e.value), TraceID: slices.Clone(e.trace[:]), SpanID: slices.Clone(e.span[:]),
	}}
}

// latencyBounds are the catalog's bounds, in nanoseconds.
var latencyBounds = func() (ns []int64) {
	for _, s := range semconv.KernelDurationBounds() {
		ns = append(ns, time.Duration(s*float64(time.Second)+0.5).Nanoseconds())
	}
	return ns
}()
