// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// account holds the totals for one set of attributes: those of open agents, of
// recently closed agents, and of all earlier ones. The Producer's lock guards it.
type account struct {
	set    attribute.Set
	clock  func() time.Time
	start  time.Time // start time of the data points
	points points
	named  namedEvents

	open   []*series // the newest last
	closed []closed  // the newest last
	past   totals    // of agents in neither list
}

// closed is the series of a closed agent.
type closed struct {
	*series
	until     time.Time
	collected bool // at least once since it was closed
}

// reportClosed is how long a closed agent is reported: as long as the receiver
// reports an exited agent. It is also reported until it was collected once, so
// that an agent can be closed before its provider is shut down.
const reportClosed = 5 * time.Minute

func newAccount(set attribute.Set, clock func() time.Time) *account {
	a := &account{set: set, clock: clock, start: clock(), points: newPoints(set)}
	a.named.points = &a.points
	return a
}

// join adds a series. It settles the closed ones, so that their last values and
// their memory usage aren't reported for the new agent.
func (a *account) join(s *series) {
	for _, c := range a.closed {
		t := c.totals()
		a.past.add(&t)
	}
	a.closed = nil
	if len(a.open) == 0 {
		a.named.forgetLast()
	}
	a.open = append(a.open, s)
	s.account = a
}

// leave closes a series.
func (a *account) leave(s *series) {
	a.open = slices.DeleteFunc(a.open, func(o *series) bool { return o == s })
	a.closed = append(a.closed, closed{series: s, until: a.clock().Add(reportClosed)})
}

// until returns when an account without open agents expires.
func (a *account) until() time.Time { return a.closed[len(a.closed)-1].until }

// settle adds expired agents to the past totals, and reports whether any other
// agents are left.
func (a *account) settle(now time.Time) bool {
	a.closed = slices.DeleteFunc(a.closed, func(c closed) bool {
		if !c.collected || now.Before(c.until) {
			return false
		}
		t := c.totals()
		a.past.add(&t)
		return true
	})
	return len(a.closed)+len(a.open) > 0
}

// collect adds the account's points. A metric without events isn't reported,
// except an agent's errors and drops: they start at 0, so that an alert can fire
// on the first one.
func (a *account) collect(c *collection, now time.Time) {
	agents := make([]*series, 0, len(a.closed)+len(a.open))
	for i := range a.closed {
		a.closed[i].collected = true
		agents = append(agents, a.closed[i].series)
	}
	agents = append(agents, a.open...)
	var present totals
	zeros := false
	for _, s := range agents {
		t := s.totals()
		present.add(&t)
		zeros = zeros || s.whole
	}
	all := a.past
	all.add(&present)
	for _, s := range agents {
		s.moveExemplars(&all)
	}
	c.begin(a.start, now)
	a.collectTransfers(c, &all)
	a.collectMemory(c, &all, present.memory[register].sum-present.memory[deregister].sum)
	for s, n := range all.errors {
		if n > 0 || zeros {
			c.int(semconv.Errors, a.points.errors[s], n, all.sampledErrors[s])
		}
		a.collectEvents(c, ringbuf.TypeErrNotPosted+ringbuf.Type(s), n)
	}
	if all.dropped.events > 0 || zeros {
		c.int(semconv.TelemetryEventsDropped, a.points.agent, all.dropped.sum)
	}
	a.collectEvents(c, ringbuf.TypeEventsDropped, all.dropped.events)
	a.collectLast(c, agents)
	a.named.collect(c)
}

func (a *account) collectTransfers(c *collection, t *totals) {
	var all int64
	for d := range t.size {
		n := t.size[d].count()
		if n == 0 {
			continue
		}
		all += n
		c.int(semconv.TransferIO, a.points.direction[d], t.size[d].sum)
		c.int(semconv.TransferRequests, a.points.direction[d], n)
		c.histogram(semconv.TransferSize, a.points.direction[d], &sizeBounds, &t.size[d])
		c.distribution(semconv.TransferThroughput, a.points.direction[d], &throughputBounds, &t.throughput[d], t.throughput[d].rateSum())
		a.collectEvents(c, ringbuf.TypeTxBytes+ringbuf.Type(d), n)
		a.collectEvents(c, ringbuf.TypeTxRequests+ringbuf.Type(d), n)
	}
	if all == 0 {
		return
	}
	c.times(a.points.agent, &t.times)
	for i, class := range semconv.SizeClasses() {
		if t.classes[i].duration.count() > 0 {
			c.times(a.points.with(attribute.String(semconv.TransferSizeClass, class)), &t.classes[i])
		}
	}
	a.collectEvents(c, ringbuf.TypeXferTime, all)
	a.collectEvents(c, ringbuf.TypeXferPostTime, all)
}

// collectMemory reports memory. The usage only includes agents that are still
// reported, and is omitted while more memory was deregistered than registered.
func (a *account) collectMemory(c *collection, t *totals, usage int64) {
	for op, counter := range [memoryOperations]semconv.Metric{semconv.MemoryRegistered, semconv.MemoryDeregistered} {
		if m := t.memory[op]; m.events > 0 {
			c.int(counter, a.points.agent, m.sum)
			a.collectEvents(c, ringbuf.TypeMemoryRegistered+ringbuf.Type(op), m.events)
		}
	}
	if t.memory[register].events+t.memory[deregister].events > 0 && usage >= 0 {
		c.int(semconv.MemoryUsage, a.points.agent, usage)
	}
}

func (a *account) collectEvents(c *collection, t ringbuf.Type, n int64) {
	if n > 0 {
		c.int(semconv.Events, a.points.events[t], n)
	}
}

// collectLast reports the last value of each kind, from the newest agent that has
// one.
func (a *account) collectLast(c *collection, all []*series) {
	newest := func(has func(*lastValues) bool) *lastValues {
		for _, s := range slices.Backward(all) {
			if has(&s.last) {
				return &s.last
			}
		}
		return nil
	}
	for d := range directions {
		if l := newest(func(l *lastValues) bool { return l.size[d].Load() >= 0 }); l != nil {
			c.int(semconv.TransferLastSize, a.points.direction[d], l.size[d].Load())
		}
	}
	if l := newest(func(l *lastValues) bool { return l.duration.Load() >= 0 }); l != nil {
		c.float(semconv.TransferLastDuration, a.points.agent, seconds(l.duration.Load()))
		c.float(semconv.TransferLastPostDuration, a.points.agent, seconds(l.post.Load()))
	}
	for op := range memoryOperations {
		if l := newest(func(l *lastValues) bool { return l.memory[op].Load() >= 0 }); l != nil {
			c.int(semconv.MemoryLastSize, a.points.operation[op], l.memory[op].Load())
		}
	}
}
