// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// exemplar is a value recorded within a sampled span.
type exemplar struct {
	at    time.Time
	value int64
	trace trace.TraceID
	span  trace.SpanID
}

// exemplars holds the newest exemplar of each bucket since the last collection.
type exemplars struct {
	size       [directions][maxBuckets]atomic.Pointer[exemplar]
	times      timesExemplars
	classes    [sizeClasses]timesExemplars
	throughput [directions][maxBuckets]atomic.Pointer[exemplar]
	errors     [statuses]atomic.Pointer[exemplar]
}

type timesExemplars struct {
	duration, post [maxBuckets]atomic.Pointer[exemplar]
}

// mayHaveSpan reports whether ctx can carry a span. It is small enough to be
// inlined; searching the context takes longer than counting.
func mayHaveSpan(ctx context.Context) bool { return ctx != context.Background() }

// sampled returns the series' exemplars and a new one without a value, if the
// filter selects the context.
func (s *series) sampled(ctx context.Context) (*exemplars, exemplar, bool) {
	span, ok := s.filter.Span(ctx)
	if !ok {
		return nil, exemplar{}, false
	}
	all := s.exemplars.Load()
	if all == nil {
		s.exemplars.CompareAndSwap(nil, new(exemplars))
		all = s.exemplars.Load()
	}
	return all, exemplar{at: s.clock(), trace: span.TraceID(), span: span.SpanID()}, true
}

func (e exemplar) storeIn(slot *atomic.Pointer[exemplar], value int64) {
	e.value = value
	slot.Store(&e)
}

func (s *series) exemplifyTransfer(ctx context.Context, d Direction, t *transfer) {
	if all, e, ok := s.sampled(ctx); ok {
		e.storeIn(&all.size[d][t.sizeBucket], t.bytes)
		at := &all.times
		if s.classes {
			at = &all.classes[semconv.SizeClass(uint64(t.bytes))]
		}
		e.storeIn(&at.duration[t.durationBucket], t.total)
		e.storeIn(&at.post[t.postBucket], t.post)
		e.storeIn(&all.throughput[d][t.throughputBucket], t.rate)
	}
}

func (s *series) exemplifyError(ctx context.Context, status Status) {
	if all, e, ok := s.sampled(ctx); ok {
		e.storeIn(&all.errors[status], 1)
	}
}

// moveExemplars moves the exemplars since the last collection into t.
func (s *series) moveExemplars(t *totals) {
	e := s.exemplars.Load()
	if e == nil {
		return
	}
	move := func(slots *[maxBuckets]atomic.Pointer[exemplar], d *distribution) {
		for i := range slots {
			if found := slots[i].Swap(nil); found != nil {
				d.exemplars = append(d.exemplars, found)
			}
		}
	}
	for d := range e.size {
		move(&e.size[d], &t.size[d])
		move(&e.throughput[d], &t.throughput[d])
	}
	move(&e.times.duration, &t.times.duration)
	move(&e.times.post, &t.times.post)
	for i := range e.classes {
		move(&e.classes[i].duration, &t.classes[i].duration)
		move(&e.classes[i].post, &t.classes[i].post)
	}
	for status := range e.errors {
		if found := e.errors[status].Swap(nil); found != nil {
			t.sampledErrors[status] = found
		}
	}
}
