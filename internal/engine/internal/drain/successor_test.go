// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// stream identifies totals at a backend.
type stream struct {
	attributes attribute.Distinct
	start      time.Time
}

// export adds a collection to what the backend has received.
func (b *harness) export(list []Snapshot) {
	for _, s := range list {
		key, n := stream{s.Stream.Equivalent(), s.Start}, s.Totals.Requests(tally.Transmit).Events
		if n < b.streams[key] {
			b.t.Errorf("a total of stream %v decreases from %d to %d", s.Stream.Encoded(attribute.DefaultEncoder()), b.streams[key], n)
		}
		b.streams[key] = n
	}
}

// received returns the events of all streams.
func (b *harness) received() (sum uint64) {
	for _, n := range b.streams {
		sum += n
	}
	return sum
}

// restartAgent starts another process of the agent, whose PID is part of the stream.
func (b *harness) restartAgent(pid int) {
	b.startAgent(64)
	b.process = attribute.NewSet(attribute.Int("process.pid", pid))
}

func TestStreamBeginsAtZeroWhenAnAttributeChanges(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.restartAgent(1)
		b.start(ringbuf.Consume, saves)
		b.push(10)
		first := b.collect()
		b.push(5) // not exported before the restart
		b.step()
		b.restartAgent(2)
		b.step()
		if !b.reopen {
			t.Fatal("the restart isn't detected")
		}
		b.open(ringbuf.Consume)
		b.push(3)
		list := b.collect()
		if len(list) != 2 {
			t.Fatalf("%d streams are exported, want the one that ended and the next one", len(list))
		}
		last, next := list[0], list[1]
		if !last.Start.Equal(first[0].Start) || !last.Stream.Equals(&first[0].Stream) || last.Totals.Requests(tally.Transmit).Events != 15 {
			t.Errorf("the stream ends as %+v, want that of %+v with 15 events", last, first[0])
		}
		if next.Start.Before(last.End) || next.Stream.Equals(&last.Stream) || next.Totals.Requests(tally.Transmit).Events != 3 {
			t.Errorf("the next stream is %+v, want one with 3 events that begins at %v", next, last.End)
		}
		if again := b.collect(); len(again) != 1 || b.received() != 18 {
			t.Errorf("%d streams after the last one was delivered, %d events received, want 1 and 18", len(again), b.received())
		}
	})
}

func TestTotalsContinueWhileTheAttributesStay(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(1)
	b.start(ringbuf.Consume, true)
	b.push(10)
	start := b.collect()[0].Start
	b.step()
	b.restartAgent(1)
	b.step()
	b.open(ringbuf.Consume)
	b.push(3)
	b.step()
	b.start(ringbuf.Consume, true) // another process with the same checkpoint
	b.step()
	if list := b.collect(); len(list) != 1 || !list[0].Start.Equal(start) || b.received() != 13 {
		t.Errorf("%d streams, %d events received, want 1 and 13", len(list), b.received())
	}
}

// The clock was hours ahead when the ring was opened, as without time synchronization. A
// backend rejects a point that isn't later than the one before, and adds up the streams.
func TestStreamBeginsAgainWhenTheClockIsSetBack(t *testing.T) {
	const back = 8 * time.Hour
	for name, restart := range map[string]bool{"while a process runs": false, "between two processes": true} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.restartAgent(1)
			b.start(ringbuf.Consume, true)
			b.push(10)
			b.collect()
			b.push(10)
			exported := b.now.Add(time.Second)
			first := b.collect()[0]
			b.step()
			b.now = b.now.Add(-back)
			if restart {
				b.start(ringbuf.Consume, true)
			}
			b.push(3)
			list := b.collect()
			if len(list) != 2 {
				t.Fatalf("%d streams are exported, want the one that ended and the next one", len(list))
			}
			last, next := list[0], list[1]
			if !last.Start.Equal(first.Start) || !last.End.After(last.Start) || !restart && !last.End.After(exported) {
				t.Errorf("the stream that began at %v ends at %v, its points at %v", last.Start, last.End, exported)
			}
			if next.Start.After(b.now) || next.Start.Before(b.now.Add(-time.Minute)) {
				t.Errorf("the next stream starts at %v, the clock is at %v", next.Start, b.now)
			}
			b.push(4)
			if again := b.collect(); len(again) != 1 || !again[0].Start.Equal(next.Start) || b.received() != 27 {
				t.Errorf("%d streams after the last one was delivered, %d events received, want 1 and 27", len(again), b.received())
			}
		})
	}
}

// The agent restarts, with another PID, while no process drains its ring. That process is
// killed at any step, and the next one too.
func TestNothingIsLostOrCountedTwiceByANewStream(t *testing.T) {
	const steps, events = 14, 20
	for first := range steps {
		for second := range steps {
			b := newHarness(t)
			b.restartAgent(1)
			run := func(left int) {
				b.left = -1
				if left > 0 {
					b.left = left
				}
				b.start(ringbuf.Consume, true)
				b.step()
				b.collect()
				b.step()
			}
			b.push(events)
			run(first)
			stored := b.storedEvents()
			b.restartAgent(2)
			b.pushValues(events, 2) // equal ones would be skipped if the first save of a run was its last
			run(second)
			run(0)
			b.collect()
			if want := stored + events; b.received() != want {
				t.Errorf("killed at steps %d and %d: %d events received, want %d", first, second, b.received(), want)
			}
		}
	}
}

func (b *harness) register(bytes uint64) {
	b.t.Helper()
	must.OK(b.t, b.writer.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, bytes)))
}

// A new stream begins with no memory registered.
func TestMemoryOfANewStreamIsKnown(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(1)
	b.start(ringbuf.Consume, false)
	b.register(1000)
	b.step()
	b.restartAgent(2)
	b.step()
	b.open(ringbuf.Consume)
	b.register(55)
	list := b.collect()
	if got, known := list[len(list)-1].Totals.MemoryUsage(); !known || got != 55 {
		t.Errorf("%d bytes (known: %v), want 55", got, known)
	}
}

// A backend that was down gets the totals of a limited number of streams.
func TestStreamsThatWereNotExportedAreLimited(t *testing.T) {
	b := started(t, false)
	for pid := range maxEnded + 2 {
		b.restartAgent(pid)
		b.step()
		b.open(ringbuf.Consume)
		b.push(1)
		b.step()
	}
	if n := len(b.owner.order) - 1; n != maxEnded || b.count(notice.StreamLost) == 0 {
		t.Errorf("%d ended streams, notices %v, want %d and one notice", n, b.notices, maxEnded)
	}
}

// The clock may be so coarse that they began at the same time.
func TestStreamsThatEndedHaveDifferentStarts(t *testing.T) {
	b := started(t, false)
	b.push(1)
	b.step()
	for range 3 {
		b.owner.succeed(b.agent(), b.now, b.now)
	}
	starts := make(map[time.Time]bool)
	for _, a := range b.owner.order {
		if !a.ended.IsZero() {
			starts[a.start] = true
		}
	}
	if len(starts) != 3 {
		t.Errorf("the starts of three streams are %v", starts)
	}
}

func TestTransfersOfASuccessorArePassedToTheHandler(t *testing.T) {
	type passed struct{ Transfers, Errors int }
	for want, handler := range map[passed]func(*passed) Handler{
		{2, 0}: func(n *passed) Handler { return Handler{Transfer: func(*Agent, *tally.Transfer) { n.Transfers++ }} },
		{0, 2}: func(n *passed) Handler { return Handler{Error: func(*Agent, tally.Error) { n.Errors++ }} },
	} {
		b := newHarness(t)
		var got passed
		b.handler = handler(&got)
		b.start(ringbuf.Consume, false)
		for range 2 {
			for _, kind := range []ringbuf.Type{ringbuf.TypeXferPostTime, ringbuf.TypeXferTime, ringbuf.TypeTxBytes, ringbuf.TypeTxRequests, ringbuf.TypeErrBackend} {
				must.OK(t, b.writer.Push(ringbuf.NewEvent(kind, 1)))
			}
			b.step()
			b.owner.succeed(b.agent(), b.now, b.now)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

// At a shutdown, nothing is known about the process of an agent that has just started.
func TestAgentWithoutAttributesIsExportedOnlyIfItsTotalsWouldBeLost(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := started(t, saves)
		host := attribute.NewSet(attribute.String("host.name", "node"))
		b.owner.cfg.Stream = func(*Snapshot) attribute.Set { return host }
		b.push(3)
		b.step(Attributed{Agent: Agent{ID: agentPath, Unattributed: true}, Reader: b.reader})
		var list []Snapshot
		b.step(&collect{deadline: b.now.Add(hungSave), last: true, done: func(c Collection) { list = c.Snapshots }})
		switch {
		case !saves && (len(list) != 1 || !list[0].Stream.Equals(&host)):
			t.Errorf("exported %+v, want the agent with the attributes of its host", list)
		case saves && len(list) > 0:
			t.Errorf("exported %+v, although the next process knows more", list)
		case saves:
			if stored := b.storedEvents(); stored != 3 {
				t.Errorf("%d events are stored, want 3", stored)
			}
		}
	})
}

// storedEvents returns the number of events that the totals of the stored checkpoint include.
func (b *harness) storedEvents() uint64 {
	b.t.Helper()
	pages, errs := checkpoint.NewPages(b.stored, b.now)
	must.OK(b.t, errors.Join(errs...))
	e, err := pages.Take(agentPath, time.Time{})
	must.OK(b.t, err)
	if e == nil {
		return 0
	}
	totals, err := b.owner.cfg.Shape.Restore(e.Totals)
	must.OK(b.t, err)
	return totals.Requests(tally.Transmit).Events
}
