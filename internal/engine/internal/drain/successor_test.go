// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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

// exported collects and delivers. It describes what is exported: the streams, with times since the first one began.
func (b *harness) exported() (lines []string) {
	for _, s := range b.collect() {
		at := func(t time.Time) time.Duration { return t.Sub(time.Unix(1_700_000_001, 0)) }
		pid, _ := s.Stream.Value("process.pid")
		bytes := "unknown"
		if n, known := s.Totals.MemoryUsage(); known {
			bytes = strconv.FormatInt(n, 10)
		}
		line := fmt.Sprintf("%s from %v: %d requests, %s bytes", pid.String(), at(s.Start), s.Totals.Requests(tally.Transmit).Events, bytes)
		if !s.End.IsZero() {
			line += fmt.Sprintf(", ended at %v", at(s.End))
		}
		lines = append(lines, line)
	}
	return lines
}

// expect compares lines.
func (b *harness) expect(want, got []string) {
	b.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		b.t.Errorf("(-want +got)\n%s", d)
	}
}

// A new stream begins with no memory registered.
func TestStreamBeginsAtZeroWhenAnAttributeChanges(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.restartAgent(1)
		b.start(ringbuf.Consume, saves)
		b.push(10)
		b.register(1000)
		b.expect([]string{"1 from 0s: 10 requests, 1000 bytes"}, b.exported())
		b.push(5) // not exported before the restart
		b.step()
		b.restartAgent(2)
		b.step()
		b.open(ringbuf.Consume)
		b.push(3)
		b.register(55)
		b.expect([]string{"1 from 0s: 15 requests, 0 bytes, ended at 4s", "2 from 4s: 3 requests, 55 bytes"}, b.exported())
		b.expect([]string{"2 from 4s: 3 requests, 55 bytes"}, b.exported())
	})
}

func TestTotalsContinueWhileTheAttributesStay(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(1)
	b.start(ringbuf.Consume, true)
	b.push(10)
	b.step()
	b.restartAgent(1)
	b.step()
	b.open(ringbuf.Consume)
	b.push(3)
	b.step()
	b.start(ringbuf.Consume, true) // another process with the same checkpoint
	b.expect([]string{"1 from 0s: 13 requests, 0 bytes"}, b.exported())
}

// The totals of the last process are stored, but their position isn't committed.
func TestMemoryIsUnknownIfAStreamBeginsInTheMiddleOfARun(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(1)
	b.start(ringbuf.Consume, true)
	b.hangs = true
	b.register(1000)
	b.steps(2)
	b.hangs, b.process = false, attribute.NewSet(attribute.Int("process.pid", 2))
	b.start(ringbuf.Consume, true)
	b.register(55)
	b.expect([]string{"1 from 0s: 0 requests, 1000 bytes, ended at 3s", "2 from 3s: 0 requests, unknown bytes"}, b.exported())
}

// The clock was hours ahead when the ring was opened, as without time synchronization. A
// backend rejects a point that isn't later than the one before, and adds up the streams.
func TestStreamBeginsAgainWhenTheClockIsSetBack(t *testing.T) {
	const began, beganAtStart = "1 from -7h59m58s: ", "1 from -7h59m59s: "
	for name, c := range map[string]struct {
		restart           bool
		last, next, later string
	}{
		"while a process runs": {false, "1 from 0s: 13 requests, 0 bytes, ended at 1.002s", began + "0 requests, unknown bytes", began + "4 requests, unknown bytes"},
		// It doesn't know when the last one exported.
		"between two processes": {true, "1 from 0s: 10 requests, 0 bytes, ended at 2ms", beganAtStart + "3 requests, unknown bytes", beganAtStart + "7 requests, unknown bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.restartAgent(1)
			b.start(ringbuf.Consume, true)
			b.push(10)
			b.exported()
			b.now = b.now.Add(-8 * time.Hour)
			if c.restart {
				b.start(ringbuf.Consume, true)
			}
			b.push(3)
			b.expect([]string{c.last, c.next}, b.exported())
			b.push(4)
			b.expect([]string{c.later}, b.exported())
		})
	}
}

// A successor begins while a process restores the totals, before it knows the agent's attributes. No event follows.
func TestSuccessorOfRestoredTotalsIsStored(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(1)
	b.start(ringbuf.Consume, true)
	b.push(10)
	b.exported()
	b.now = b.now.Add(-8 * time.Hour)
	b.attribution = Sought
	for _, want := range [][]string{{"1 from 0s: 10 requests, 0 bytes, ended at 2ms"}, nil} { // of two processes
		b.start(ringbuf.Consume, true)
		b.steps(2)
		b.expect(want, b.exported())
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

// A backend that was down gets the totals of a limited number of streams. The clock may be so coarse that
// they began at the same time.
func TestStreamsThatWereNotExportedAreLimited(t *testing.T) {
	b := newHarness(t)
	b.restartAgent(0)
	b.start(ringbuf.Consume, false)
	for pid := range maxEnded + 2 {
		b.push(1 + pid)
		b.stepIn(firstWait)
		b.restartAgent(1 + pid)
		b.stepIn(firstWait)
		if pid < 3 {
			b.now = time.Unix(1_700_000_000, 0)
		}
		b.open(ringbuf.Consume)
	}
	b.expect([]string{
		"2 from 2ns: 3 requests, 0 bytes, ended at 0s", "3 from 3ns: 4 requests, 0 bytes, ended at 1.01s", "4 from 1.01s: 5 requests, 0 bytes, ended at 2.02s",
		"5 from 2.02s: 6 requests, 0 bytes, ended at 3.03s", "6 from 3.03s: 0 requests, 0 bytes",
	}, b.exported())
	if n := b.count(notice.StreamLost); n != 2 {
		t.Errorf("%d lost streams are reported, want 2", n)
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
		b.step(Attributed{Was: agentPath, Agent: Agent{ID: agentPath, Attribution: Sought}, Reader: b.reader})
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
	pages, errs := checkpoint.NewPages(b.stored)
	must.OK(b.t, errors.Join(errs...))
	if !slices.Contains(pages.IDs(), agentPath) {
		return 0
	}
	e, err := pages.Get(agentPath)
	must.OK(b.t, err)
	totals, err := b.owner.cfg.Shape.Restore(e.Totals)
	must.OK(b.t, err)
	return totals.Requests(tally.Transmit).Events
}
