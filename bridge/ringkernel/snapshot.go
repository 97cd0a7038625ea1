// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
)

// totals holds a kernel's counts since the start of its series.
type totals struct {
	received, sent, processed, errors int64
	dropped                           [queues]int64
	latency                           time.Duration
}

// minus returns the difference between t and o.
func (t totals) minus(o *totals) totals {
	t.received -= o.received
	t.sent -= o.sent
	t.processed -= o.processed
	t.errors -= o.errors
	t.latency -= o.latency
	for q := range t.dropped {
		t.dropped[q] -= o.dropped[q]
	}
	return t
}

// era is the time between two resets. Counters never decrease, so a reset only
// saves their values.
type era struct {
	start     time.Time
	totals    totals
	latencies expo.Mark
}

// read returns the totals, and sets latencies to the kernel's latencies.
func (k *Kernel) read(latencies *expo.Sum) totals {
	latencies.Reset()
	var t totals
	for i := range k.lanes {
		s := k.lanes[i].Load()
		if s == nil {
			continue
		}
		t.received += s.received.Load()
		t.sent += s.sent.Load()
		for q := range s.dropped {
			t.dropped[q] += s.dropped[q].Load()
		}
		latencies.Add(&s.latency)
	}
	t.processed = int64(latencies.Count())
	t.latency = time.Duration(latencies.Nanoseconds())
	t.errors, _ = k.errors.load()
	return t
}

// startEra restarts the snapshots at 0.
func (k *Kernel) startEra(now time.Time) {
	for i := range k.lanes {
		if s := k.lanes[i].Load(); s != nil {
			s.latency.Restart()
		}
	}
	k.errors.forgetLast()
	k.received.forget()
	k.window.Store(0) // so that the next message reads the clock
	latencies := new(expo.Sum)
	t := k.read(latencies)
	k.era.Store(&era{start: now, totals: t, latencies: latencies.Mark()})
}

// telemetry returns the snapshot of the current era. It overwrites latencies.
func (k *Kernel) telemetry(now time.Time, latencies *expo.Sum) Telemetry {
	e := k.era.Load() // before the totals, so that these are at least the era's
	t := k.read(latencies).minus(&e.totals)
	s := Telemetry{
		KernelID:          k.id,
		State:             State(k.state.Load()),
		MessagesReceived:  t.received,
		MessagesSent:      t.sent,
		MessagesProcessed: t.processed,
		Errors:            t.errors,
		StartTime:         e.start,
		EndTime:           k.ended.load(),
		LastMessageTime:   k.received.load(),
		Time:              now,
		Input:             k.queueTelemetry(InputQueue, &t),
		Output:            k.queueTelemetry(OutputQueue, &t),
		TotalLatency:      t.latency,
	}
	s.MessagesDropped = s.Input.Dropped + s.Output.Dropped
	_, s.LastError = k.errors.load()
	if s.MessagesProcessed > 0 {
		shortest, longest := k.extremes()
		q := latencies.Quantiles(&e.latencies, shortest, longest, 0.5, 0.99)
		s.MinLatency, s.MaxLatency = time.Duration(shortest), time.Duration(longest)
		s.P50Latency, s.P99Latency = time.Duration(q[0]), time.Duration(q[1])
	}
	return s
}

func (k *Kernel) queueTelemetry(q Queue, t *totals) QueueTelemetry {
	size, capacity := k.queues[q].read()
	return QueueTelemetry{
		Size: size.messages, Capacity: capacity.messages, Dropped: t.dropped[q],
	}
}

// extremes returns the shortest and the longest latency of the era, in nanoseconds.
func (k *Kernel) extremes() (shortest, longest int64) {
	first := true
	for i := range k.lanes {
		s := k.lanes[i].Load()
		if s == nil {
			continue
		}
		least, most, ok := s.latency.Extremes()
		if !ok {
			continue
		}
		if first || least < shortest {
			shortest = least
		}
		longest = max(longest, most)
		first = false
	}
	return shortest, longest
}
