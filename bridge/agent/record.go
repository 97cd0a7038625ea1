// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Transfer records a completed transfer that the agent initiated: the number of
// bytes, the time from its start until it was posted to the backend, and the time
// from its start until its completion was observed, which includes the post time.
//
// If ctx carries a sampled span, the histograms get exemplars with its trace ID.
// Times are truncated to whole microseconds, as NIXL's are. Negative values count
// as 0.
func (a *Agent) Transfer(ctx context.Context, d Direction, bytes int64, post, total time.Duration) {
	if a == nil || a.done.Load() {
		return
	}
	if d != Receive {
		d = Transmit
	}
	t := transfer{bytes: max(bytes, 0), post: max(post.Microseconds(), 0), total: max(total.Microseconds(), 0)}
	if a.account != nil {
		a.transfer(ctx, d, &t)
	}
	if a.outlet != nil {
		events := t.events(d)
		a.outlet.stage(events[:]...)
	}
}

// transfer holds a transfer's values and their buckets.
type transfer struct {
	bytes, post, total                                       int64 // times in µs
	rate                                                     int64 // bytes/s
	sizeBucket, postBucket, durationBucket, throughputBucket int
}

func (s *series) transfer(ctx context.Context, d Direction, t *transfer) {
	t.sizeBucket = sizeBounds.bucket(t.bytes)
	t.durationBucket, t.postBucket = durationBounds.bucket(t.total), durationBounds.bucket(t.post)
	t.rate = int64(min(semconv.Throughput(uint64(t.bytes), uint64(t.total)), math.MaxInt64))
	t.throughputBucket = throughputBounds.bucket(t.rate)
	s.last.transfer(d, t)
	l := s.lane()
	l.size[d].record(t.bytes, t.sizeBucket)
	at := &l.times
	if l.classes != nil {
		at = &l.classes[semconv.SizeClass(uint64(t.bytes))]
	}
	at.duration.record(t.total, t.durationBucket)
	at.post.record(t.post, t.postBucket)
	l.throughput[d].record(t.rate, t.throughputBucket)
	if mayHaveSpan(ctx) {
		s.exemplifyTransfer(ctx, d, t)
	}
}

// MemoryRegistered records that memory was registered with the agent, in bytes.
// The context isn't used yet; see [Agent].
func (a *Agent) MemoryRegistered(_ context.Context, bytes int64) {
	if a != nil {
		a.memory(register, bytes)
	}
}

// MemoryDeregistered records that memory was deregistered from the agent, in
// bytes. The context isn't used yet; see [Agent].
func (a *Agent) MemoryDeregistered(_ context.Context, bytes int64) {
	if a != nil {
		a.memory(deregister, bytes)
	}
}

func (a *Agent) memory(op memoryOperation, bytes int64) {
	if a.done.Load() {
		return
	}
	bytes = max(bytes, 0)
	if a.account != nil {
		a.last.memory[op].Store(bytes)
		m := &a.lane().memory[op]
		m.sum.add(bytes)
		m.events.Add(1)
	}
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered+ringbuf.Type(op), uint64(bytes)))
	}
}

// Error records a failed operation. An invalid status counts as [StatusUnknown].
// If ctx carries a sampled span, nixl.errors gets an exemplar.
func (a *Agent) Error(ctx context.Context, s Status) {
	if a == nil || a.done.Load() {
		return
	}
	if s >= statuses {
		s = StatusUnknown
	}
	a.errors[s].Add(1)
	if mayHaveSpan(ctx) {
		a.exemplifyError(ctx, s)
	}
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeErrNotPosted+ringbuf.Type(s), 1))
	}
}

// Event records a custom event. For each name, the metrics are the number of
// events, the sum of their values, and the last value. A name ends at its first
// NUL or after 31 bytes, as in a ring. After 200 names, events of further names
// count under otel.metric.overflow = true.
//
// Only rings of layouts V1 and V2Named carry custom events. The context isn't used
// yet; see [Agent].
func (a *Agent) Event(_ context.Context, c EventCategory, name string, value uint64) {
	if a == nil || a.done.Load() {
		return
	}
	category := c.category()
	cut := ringbuf.MakeName(name)
	if a.account != nil {
		a.account.named.add(category, cut.Bytes(), value)
	}
	if a.outlet != nil {
		a.outlet.stage(ringbuf.Event{Category: category, Named: true, Name: cut, Value: value})
	}
}

// EventsDropped records that the program dropped events instead of passing them to
// the agent. The agent itself counts the events that it drops because its staging
// buffer is full. The context isn't used yet; see [Agent].
func (a *Agent) EventsDropped(_ context.Context, events uint64) {
	if a == nil || a.done.Load() {
		return
	}
	a.drop(events)
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeEventsDropped, events))
	}
}

// events returns a transfer's events, in NIXL's order.
func (t *transfer) events(d Direction) [4]ringbuf.Event {
	return [4]ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, uint64(t.post)),
		ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(t.total)),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), uint64(t.bytes)),
		ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1),
	}
}

// seconds divides, as the receiver does, so that both report exactly the same
// value.
func seconds(micros int64) float64 { return float64(micros) / 1e6 }
