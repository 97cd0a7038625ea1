// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// attribute reports that the process that has the ring mapped was found.
func (b *harness) attribute(pid int) {
	b.id, b.attribution = "rank 0", Known
	b.process = attribute.NewSet(attribute.Int("process.pid", pid))
	b.step(Attributed{Was: agentPath, Agent: Agent{ID: b.id, Name: "agent", Path: agentPath, Process: b.process}, Reader: b.reader})
}

// another starts another agent, with a ring that nobody knows, and opens the ring.
func (b *harness) another(events int) {
	b.t.Helper()
	b.mem = make(memory, len(b.mem))
	b.startAgent(64)
	b.id, b.attribution, b.process = agentPath, Sought, attribute.Set{}
	b.push(events)
	b.open(ringbuf.Consume)
}

func TestAgentKeepsItsTotalsWhenItGetsItsID(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.attribution = Sought
		b.start(ringbuf.Consume, saves)
		b.push(10)
		b.register(1000)
		b.expect(nil, b.exported()) // nothing is known
		b.attribute(1)
		b.push(3)
		b.expect([]string{"1 from 0s: 13 requests, 1000 bytes"}, b.exported())
		if _, old := b.owner.agents[agentPath]; old || len(b.owner.agents) != 1 || len(b.owner.rings) != 1 || b.owner.rings[Holder{}] != 1 {
			t.Errorf("agents are %v, rings %v", b.owner.agents, b.owner.rings)
		}
	})
}

// The next save may store only some of the agents, but it removes the checkpoint of the earlier ID.
func TestTotalsAreNeverStoredUnderNoID(t *testing.T) {
	b := newHarness(t)
	b.attribution = Sought
	b.start(ringbuf.Consume, true)
	b.step()
	b.owner.identify(b.agent(), Agent{ID: "rank 0"}, b.now)
	if ids := b.owner.pages.IDs(); !slices.Equal(ids, []string{"rank 0"}) {
		t.Errorf("the checkpoint has the IDs %v", ids)
	}
}

// A worker has a new name at each start, so only its process shows which one it is.
func TestAgentContinuesTheTotalsOfItsLastProcess(t *testing.T) {
	for pid, want := range map[int][]string{
		1: {"1 from 0s: 17 requests, 55 bytes"},
		2: {"1 from 0s: 12 requests, 0 bytes, ended at 5s", "2 from 5s: 5 requests, 55 bytes"},
	} {
		eachStore(t, func(t *testing.T, saves bool) {
			b := newHarness(t)
			b.attribution = Sought
			b.start(ringbuf.Consume, saves)
			b.push(10)
			b.register(1000)
			b.attribute(1)
			b.exported()
			b.step(Attended{ID: b.id, Reader: b.reader, Up: UpNo})
			last := b.writer
			b.another(5)
			b.register(55)
			for range 2 { // by the last process, after the last drain
				must.OK(t, last.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
			}
			b.owner.agents["rank 0"].Path = "/rings/old"
			b.attribute(pid)
			b.expect(want, b.exported())
			if b.count(notice.RingReplaced) != 1 {
				t.Error("the restart isn't reported")
			}
		})
	}
}

// A point must be later than the last one, which the agent's last process had.
func TestAgentThatContinuesTotalsContinuesTheirTime(t *testing.T) {
	b := newHarness(t)
	b.attribution = Sought
	b.start(ringbuf.Consume, false)
	b.push(10)
	b.attribute(1)
	b.steps(10)
	b.exported()
	b.step(Attended{ID: b.id, Reader: b.reader, Up: UpNo})
	b.another(5)
	b.owner.agents["rank 0"].Path = "/rings/old"
	b.attribute(1)
	b.now = b.now.Add(-10 * time.Second)
	b.expect([]string{"1 from 0s: 15 requests, 0 bytes, ended at 12.002s", "1 from 6s: 0 requests, unknown bytes"}, b.exported())
}

// Its ring is opened again, and refused as long as the other one runs.
func TestAgentWithTheIDOfARunningOneIsExportedOnceMore(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.attribution = Sought
		b.start(ringbuf.Consume, saves)
		b.push(10)
		b.attribute(1)
		b.step(Attended{ID: b.id, Reader: b.reader, Up: UpYes})
		b.owner.agents["rank 0"].Path = "/rings/other"
		b.another(5)
		b.hangs, b.reopen = saves, false
		b.push(1)
		b.step()
		b.attribute(2)
		if b.hangs = false; saves {
			b.stepIn(0, saved{})
		}
		b.expect([]string{"2 from 3s: 6 requests, 0 bytes, ended at 5s", "1 from 0s: 10 requests, 0 bytes"}, b.exported())
		b.expect([]string{"1 from 0s: 10 requests, 0 bytes"}, b.exported())
		if !b.reopen || b.reader.Uncommitted() > 0 {
			t.Errorf("opened again: %v, %d events would be counted again", b.reopen, b.reader.Uncommitted())
		}
	})
}

// One step doesn't read all events of the ring that another one replaces.
func TestRingOfTheLastProcessIsDrainedBeforeAnotherReplacesIt(t *testing.T) {
	const events = 3 * maxPass
	b := newHarnessOf(t, 4*maxPass)
	b.attribution = Sought
	b.start(ringbuf.Consume, false)
	b.attribute(1)
	b.fill(events)
	last := b.owner.agents["rank 0"]
	last.due = b.now.Add(time.Hour)
	_, w, r := inMemory(t, 64)
	must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	b.busy = true
	provisional := Agent{ID: agentPath, Path: agentPath, Attribution: Sought}
	b.stepIn(0, Offer{Agent: provisional, Reader: r, From: b})
	found := Agent{ID: "rank 0", Path: agentPath, Process: b.process}
	b.stepIn(0, Attributed{Was: agentPath, Agent: found, Reader: r})
	if n := last.tally.Requests(tally.Transmit).Events; !b.reopen || last.reader == r || n > 2*maxPass+1 {
		t.Errorf("opened again: %v; %d events are counted in one step", b.reopen, n)
	}
	for b.refused = ErrBusy; b.refused != nil; {
		_, _, again := inMemory(t, 64)
		b.stepIn(0, Offer{Agent: found, Reader: again, From: b})
	}
	if n := last.tally.Requests(tally.Transmit).Events; n != events {
		t.Errorf("%d events are counted, want %d", n, events)
	}
}

// The last agent of the first slice gets an ID that comes before those of all others.
func TestCollectionHasEachAgentOnceWhileIDsChange(t *testing.T) {
	b := started(t, false)
	for i := range 2 * maxSlice {
		b.add(fmt.Sprint("/many-", i), 4, Holder{})
	}
	want, got := make(map[string]int), make(map[string]int)
	for id := range b.owner.agents {
		want[id] = 1
	}
	b.step(&collect{deadline: b.now.Add(time.Minute), done: func(c Collection) {
		for _, s := range c.Snapshots {
			got[s.ID]++
		}
	}})
	first := "/a"
	for checkpoint.PageOf(first) != 0 {
		first += "a"
	}
	last := b.owner.order[maxSlice-1]
	b.step(Attributed{Was: last.ID, Agent: Agent{ID: first, Path: last.Path}, Reader: last.reader})
	b.steps(3)
	if d := cmp.Diff(want, got); b.owner.order[0] != last || d != "" {
		t.Errorf("the agent is now agent %q, times that each agent is collected (-want +got):\n%s", last.ID, d)
	}
}

// The process is killed at any step, and so is the next one, which knows the agent's process from the beginning.
func TestNothingIsLostOrCountedTwiceWhileAnAgentGetsItsID(t *testing.T) {
	const steps, events = 14, 20
	for first := range steps {
		for second := range steps {
			b := newHarness(t)
			run := func(left int, id string) {
				b.left = -1
				if left > 0 {
					b.left = left
				}
				b.id, b.attribution = id, Known
				if id == agentPath {
					b.attribution, b.process = Sought, attribute.Set{}
				}
				if b.start(ringbuf.Consume, true); !b.killed() && id == agentPath {
					b.attribute(1)
				}
				b.process = attribute.NewSet(attribute.Int("process.pid", 1))
				b.step()
				b.collect()
				b.step()
			}
			b.file = files.ID{Ino: 1}
			b.push(events)
			run(first, agentPath)
			b.pushValues(events, 2)
			run(second, agentPath)
			b.push(events)
			run(0, "rank 0")
			if n := b.received(); n != 3*events {
				t.Errorf("killed at steps %d and %d: the backend has %d events, want %d", first, second, n, 3*events)
			}
		}
	}
}

// Whoever had the ring mapped last is more than all processes that may have left it have in common.
func TestAttributesOfTheLastKnownProcessStay(t *testing.T) {
	known, pid := attribute.NewSet(attribute.String("service.name", "decode")), attribute.NewSet(attribute.Int("process.pid", 1))
	other := attribute.NewSet(attribute.Int("process.pid", 2))
	for _, tt := range []struct {
		as   Attribution
		pid  attribute.Set
		want string
	}{
		{Known, pid, "nixl"}, {Partly, pid, "decode"}, {Partly, other, "nixl"}, {Left, attribute.Set{}, "decode"}, {Sought, attribute.Set{}, "decode"},
	} {
		b := newHarness(t)
		b.start(ringbuf.Consume, false)
		b.owner.cfg.Stream = func(s *Snapshot) attribute.Set {
			name, ok := s.Resource.Value("service.name")
			if !ok {
				name = attribute.StringValue("nixl")
			}
			return attribute.NewSet(attribute.KeyValue{Key: "service.name", Value: name})
		}
		a := Agent{ID: agentPath, Path: agentPath, Resource: known, Process: pid}
		b.step(Attributed{Was: agentPath, Agent: a, Reader: b.reader})
		a.Resource, a.Process, a.Attribution = attribute.Set{}, tt.pid, tt.as
		b.step(Attributed{Was: agentPath, Agent: a, Reader: b.reader})
		name, _ := b.agent().stream.Value("service.name")
		if got, want := fmt.Sprint(name.AsString(), b.agent().Resource == known), fmt.Sprint(tt.want, tt.want == "decode"); got != want {
			t.Errorf("%v of %v: %s, want %s", tt.as, tt.pid.ToSlice(), got, want)
		}
	}
}
