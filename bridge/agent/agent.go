package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/lane"
	"github.com/nixl-otel/nixl-otel/bridge/internal/ledger"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ScopeName is the name of the instrumentation scope of an agent's metrics.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/agent"

// Agent records what an agent does that moves data as NIXL's do, in Go: its
// metrics are those that the Collector makes of a NIXL agent's ring.
//
// All methods are safe for concurrent use. A nil *Agent does nothing: that is
// what [New] returns where telemetry is disabled.
type Agent struct {
	name  string
	clock func() time.Time

	ledger      *ledger.Ledger[instruments, *account]
	account     *account
	points      points // the account's
	instruments instruments

	lanes   [lane.Count]atomic.Pointer[stripe]
	last    lastValues
	errors  [statuses]atomic.Int64
	dropped counter // events, as the agent reports it

	outlet *outlet // nil without a ring and sinks

	closed   atomic.Bool
	closing  sync.Once
	closeErr error
}

// New makes an agent, its instruments, and its ring where one is asked
// for. The name is that of the ring's file too; what agents of one name and
// provider count adds up. An error is an instrument that the provider refuses,
// or a ring that can't be made, and names it.
//
// Close the agent after the MeterProvider, so that what came last is still
// collected.
func New(name string, opts ...Option) (*Agent, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	if !c.enabled {
		return nil, nil
	}
	a := &Agent{name: name, clock: c.clock, ledger: ledgers.Of(c.provider)}
	if a.clock == nil {
		a.clock = time.Now
	}
	if a.instruments, err = a.ledger.Report(newInstruments); err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	a.enter(commonAttributes(&c, name))
	if a.outlet, err = openOutlet(a, &c); err != nil {
		a.leave()
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	return a, nil
}

// Name is the agent's name.
func (a *Agent) Name() string {
	if a == nil {
		return ""
	}
	return a.name
}

// Transfer counts a transfer that the agent initiated and saw complete: the
// bytes that it moved, the time from its start until it was posted to the
// backend, and the time from its start until it was seen to be complete, which
// includes the former.
//
// Times are cut to whole microseconds, as those of NIXL are; what is below 0
// counts as 0.
func (a *Agent) Transfer(d Direction, bytes int64, post, total time.Duration) {
	if a == nil {
		return
	}
	if d != Receive {
		d = Transmit
	}
	bytes = max(bytes, 0)
	postMicros, totalMicros := max(post.Microseconds(), 0), max(total.Microseconds(), 0)
	a.last.transfer(d, bytes, postMicros, totalMicros)
	s := a.lane()
	s.bytes[d].add(bytes)
	s.transfers[d].Add(1)
	ctx, p := context.Background(), &a.points
	a.instruments.size.Record(ctx, float64(bytes), p.recordDirection[d]...)
	a.instruments.duration.Record(ctx, seconds(totalMicros), p.record...)
	a.instruments.postDuration.Record(ctx, seconds(postMicros), p.record...)
	if a.outlet != nil {
		events := transferEvents(d, uint64(bytes), uint64(postMicros), uint64(totalMicros))
		a.outlet.stage(events[:]...)
	}
}

// MemoryRegistered counts memory that was registered with the agent, in bytes.
func (a *Agent) MemoryRegistered(bytes int64) {
	if a != nil {
		a.memory(register, bytes)
	}
}

// MemoryDeregistered counts memory that was deregistered from the agent, in
// bytes.
func (a *Agent) MemoryDeregistered(bytes int64) {
	if a != nil {
		a.memory(deregister, bytes)
	}
}

func (a *Agent) memory(op memoryOperation, bytes int64) {
	bytes = max(bytes, 0)
	a.last.memory[op].Store(bytes)
	m := &a.lane().memory[op]
	m.sum.add(bytes)
	m.events.Add(1)
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered+ringbuf.Type(op), uint64(bytes)))
	}
}

// Error counts an operation that ended in an error. What is no status of NIXL
// counts as [StatusUnknown].
func (a *Agent) Error(s Status) {
	if a == nil {
		return
	}
	if s >= statuses {
		s = StatusUnknown
	}
	a.errors[s].Add(1)
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeErrNotPosted+ringbuf.Type(s), 1))
	}
}

// Event counts an event of one's own: how many there were under each name, the
// sum of their values, and the newest. A name ends at its first NUL or after
// 31 bytes, as it does in a ring. Past 200 names an agent's events count under
// otel.metric.overflow = true.
//
// Only rings of layout V1 and V2Named carry such events.
func (a *Agent) Event(c EventCategory, name string, value uint64) {
	if a == nil {
		return
	}
	category := c.category()
	cut := ringbuf.MakeName(name)
	if !a.closed.Load() {
		a.account.named.add(category, cut.Bytes(), value)
	}
	if a.outlet != nil {
		a.outlet.stage(ringbuf.Event{Category: category, Named: true, Name: cut, Value: value})
	}
}

// EventsDropped counts events that were dropped before they reached any
// telemetry. What the agent itself drops, because more was recorded in a run
// interval than its ring can hold, it counts by itself.
func (a *Agent) EventsDropped(events uint64) {
	if a == nil {
		return
	}
	a.dropped.sum.add(saturatedSum(events))
	a.dropped.events.Add(1)
	if a.outlet != nil {
		a.outlet.stage(ringbuf.NewEvent(ringbuf.TypeEventsDropped, events))
	}
}

// Flush writes the events that are staged to the ring and to the sinks, now
// rather than at the end of the run interval. The errors are those of the
// ring and of the sinks.
func (a *Agent) Flush() error {
	if a == nil || a.outlet == nil {
		return nil
	}
	return a.outlet.flush()
}

// Close flushes, closes the ring, whose file stays as a real agent's does, and
// ends the reporting: counters know nothing of what is recorded after it. The
// sinks are the caller's to close.
//
// Counters stay as they are, as a counter that goes back, or ends while its
// provider goes on, is one that backends take for a new one: the provider
// reports them for as long as it lives, and an agent of the same name counts
// on from there. That is kept of the newest 200 agents that are closed. The
// last values end, and nixl.memory.usage loses what the agent had.
//
// Close waits for the sinks, so that a sink can't call it. It can be called
// again: it returns what it returned the first time.
func (a *Agent) Close() error {
	if a == nil {
		return nil
	}
	a.closing.Do(func() {
		var err error
		if a.outlet != nil {
			err = a.outlet.close()
		}
		a.leave()
		if err != nil {
			a.closeErr = fmt.Errorf("close agent %s: %w", a.name, err)
		}
	})
	return a.closeErr
}

// lane is the stripe of the goroutine that runs.
func (a *Agent) lane() *stripe {
	p := &a.lanes[lane.Index()]
	if s := p.Load(); s != nil {
		return s
	}
	p.CompareAndSwap(nil, new(stripe))
	return p.Load()
}

// seconds divides as the receiver does, so that a value on a bucket's bound
// falls into the same bucket.
func seconds(micros int64) float64 { return float64(micros) / 1e6 }
