package ringkernel

import "time"

// totals are what a kernel counted since it was first registered.
type totals struct {
	received, sent, processed, dropped, errors int64
	latency                                    time.Duration
}

// era is the time from a reset to the next. Counters never go back, so a reset
// only notes where they stand.
type era struct {
	start  time.Time
	totals totals
}

func (t totals) plus(o totals) totals {
	return totals{
		received:  t.received + o.received,
		sent:      t.sent + o.sent,
		processed: t.processed + o.processed,
		dropped:   t.dropped + o.dropped,
		errors:    t.errors + o.errors,
		latency:   t.latency + o.latency,
	}
}

func (k *Kernel) totals() totals {
	var t totals
	for i := range k.lanes {
		s := k.lanes[i].Load()
		if s == nil {
			continue
		}
		t.received += s.received.Load()
		t.sent += s.sent.Load()
		t.dropped += s.dropped.Load()
		t.processed += int64(s.latency.Count())
		t.latency += time.Duration(s.latency.Nanoseconds())
	}
	t.errors, _ = k.errors.load()
	return t
}

// telemetry is the snapshot of the present era.
func (k *Kernel) telemetry(now time.Time) Telemetry {
	e := k.era.Load() // before the totals, so that these are never behind
	t := k.totals()
	s := Telemetry{
		KernelID:          k.id,
		State:             State(k.state.Load()),
		MessagesReceived:  t.received - e.totals.received,
		MessagesSent:      t.sent - e.totals.sent,
		MessagesProcessed: t.processed - e.totals.processed,
		MessagesDropped:   t.dropped - e.totals.dropped,
		Errors:            t.errors - e.totals.errors,
		StartTime:         e.start,
		LastMessageTime:   k.received.load(),
		Time:              now,
		Input:             k.queues[InputQueue].telemetry(),
		Output:            k.queues[OutputQueue].telemetry(),
		TotalLatency:      t.latency - e.totals.latency,
	}
	_, s.LastError = k.errors.load()
	if s.MessagesProcessed > 0 {
		s.MinLatency, s.MaxLatency = k.extremes()
	}
	return s
}

func (q *queue) telemetry() QueueTelemetry {
	size, capacity := q.read()
	return QueueTelemetry{Size: size.messages, Capacity: capacity.messages}
}

// extremes are the shortest and the longest latency of the era.
func (k *Kernel) extremes() (shortest, longest time.Duration) {
	first := true
	for i := range k.lanes {
		s := k.lanes[i].Load()
		if s == nil {
			continue
		}
		least, most, ok := s.latency.Newest()
		if !ok {
			continue
		}
		if first || time.Duration(least) < shortest {
			shortest = time.Duration(least)
		}
		longest = max(longest, time.Duration(most))
		first = false
	}
	return shortest, longest
}

// startEra has the snapshots start from 0.
func (k *Kernel) startEra(now time.Time) {
	for i := range k.lanes {
		if s := k.lanes[i].Load(); s != nil {
			s.latency.Restart()
		}
	}
	k.errors.forgetLast()
	k.received.forget()
	k.window.Store(0) // the next message's time is to be read
	k.era.Store(&era{start: now, totals: k.totals()})
}
