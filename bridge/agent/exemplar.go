package agent

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// exemplar is a transfer of a sampled span.
type exemplar struct {
	at    time.Time
	value int64
	trace trace.TraceID
	span  trace.SpanID
}

// exemplars hold the newest of each bucket since the last collection.
type exemplars struct {
	size           [directions][maxBuckets]atomic.Pointer[exemplar]
	duration, post [maxBuckets]atomic.Pointer[exemplar]
}

// exemplify keeps a transfer as an exemplar if its context has a sampled span:
// the condition of the SDK's default filter.
func (s *series) exemplify(ctx context.Context, d Direction, t *transfer) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return
	}
	all := s.exemplars.Load()
	if all == nil {
		s.exemplars.CompareAndSwap(nil, new(exemplars))
		all = s.exemplars.Load()
	}
	e := exemplar{at: s.clock(), trace: span.TraceID(), span: span.SpanID()}
	store := func(slot *atomic.Pointer[exemplar], value int64) {
		own := e
		own.value = value
		slot.Store(&own)
	}
	store(&all.size[d][t.sizeBucket], t.bytes)
	store(&all.duration[t.durationBucket], t.total)
	store(&all.post[t.postBucket], t.post)
}

// moveExemplars moves the exemplars since the last collection to the
// distributions.
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
	}
	move(&e.duration, &t.duration)
	move(&e.post, &t.post)
}
