// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
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

// faulty is the Backing of a ring in plain memory. If err isn't nil, accesses fail with it.
type faulty struct {
	memory
	err   *error
	fresh *bool
}

func (f faulty) Now() time.Time {
	if *f.fresh {
		return time.Unix(0, 0)
	}
	return f.memory.Now()
}

func (f faulty) Stat() (ringbuf.FileState, error) {
	state, err := f.memory.Stat()
	state.Ino = 1
	return state, err
}

func (f faulty) Guard(fn func()) error {
	if *f.err != nil {
		return *f.err
	}
	return f.memory.Guard(fn)
}

// harness is an owner with one ring, its source, and a store.
type harness struct {
	t      testing.TB
	owner  *owner
	now    time.Time
	next   time.Time // when the owner wants to run
	mem    memory
	err    error // error of accesses to the ring's memory
	fresh  bool  // the reader's clock stands still
	writer *ringbuf.Writer
	reader *ringbuf.Reader

	handler      Handler
	stored       [][]byte // the values of all storage keys
	inbox        []Message
	calls        []func() // of the owner in the current step, which take effect after it
	hangs        bool     // whether the store doesn't answer saves
	saving       func()   // called during a save, unless it is nil
	saves, pages int      // number of saves, and of the pages that they wrote
	batch        *batch   // the last save
	notices      []notice.Notice
	reopen       bool
	refused      error // the answer to the last offer
	retired      bool
	busy         bool          // a step may be due at once
	left         int           // owner's steps and calls until the process is killed; -1 for never
	process      attribute.Set // of the agent; it is part of the stream
	attribution  Attribution
	id           string            // of the agent
	file         files.ID          // of the ring; known only to tests that set it
	streams      map[stream]uint64 // what a backend has received: the newest total of each stream
}

const agentPath = "/rings/agent"

func newHarness(t testing.TB) *harness { t.Helper(); return newHarnessOf(t, 64) }

func newHarnessOf(t testing.TB, capacity int) *harness {
	t.Helper()
	b := &harness{
		t: t, now: time.Unix(1_700_000_000, 0), mem: make(memory, ringbuf.V4.FileSize(uint64(capacity))),
		stored: make([][]byte, len(checkpoint.Keys())), streams: make(map[stream]uint64), left: -1, id: agentPath,
	}
	b.startAgent(capacity)
	return b
}

// started returns a harness with a process that consumes.
func started(t *testing.T, saves bool) *harness {
	t.Helper()
	b := newHarness(t)
	b.start(ringbuf.Consume, saves)
	return b
}

// startAgent starts another process of the agent.
func (b *harness) startAgent(capacity int) {
	b.t.Helper()
	w, err := ringbuf.NewWriter(b.mem, b.mem, ringbuf.V4, capacity)
	must.OK(b.t, err)
	b.writer = w
}

// eachStore runs a test without and with a store.
func eachStore(t *testing.T, run func(t *testing.T, saves bool)) {
	t.Helper()
	for _, saves := range []bool{false, true} {
		t.Run(fmt.Sprintf("saves %t", saves), func(t *testing.T) { run(t, saves) })
	}
}

// start starts a new process.
func (b *harness) start(mode ringbuf.Mode, saves bool) {
	b.t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	must.OK(b.t, err)
	b.owner = newOwner(&Config{
		Shape: shape, Observe: mode == ringbuf.Observe, RunInterval: 100 * time.Millisecond, StaleAfter: time.Minute,
		Stream: func(s *Snapshot) attribute.Set { return s.Process }, Handler: b.handler,
	}, b, saves)
	b.inbox, b.calls, b.batch, b.notices, b.reopen = nil, nil, nil, nil, false
	if b.owner.saves {
		b.owner.load(b.stored, nil, b.now)
	}
	b.open(mode)
}

func (b *harness) open(mode ringbuf.Mode) {
	b.t.Helper()
	faults := b.err
	b.err = nil // opening doesn't access the mapping
	r, err := ringbuf.NewReader(b.mem, faulty{b.mem, &b.err, &b.fresh}, mode)
	must.OK(b.t, err)
	b.reader, b.err = r, faults
	a := Agent{ID: b.id, Name: "agent", Dir: "/rings", Path: agentPath, Process: b.process, Attribution: b.attribution}
	b.step(Offer{Agent: a, Reader: r, From: b, File: b.file})
}

// step advances the time by a second.
func (b *harness) step(messages ...Message) { b.stepIn(time.Second, messages...) }

func (b *harness) steps(n int) {
	for range n {
		b.step()
	}
}

// stepIn is step after another time.
func (b *harness) stepIn(d time.Duration, messages ...Message) {
	b.now = b.now.Add(d)
	for b.inbox = append(b.inbox, messages...); !b.killed(); {
		in := b.inbox
		b.inbox = nil
		b.next = b.owner.step(b.now, in)
		calls := b.calls
		b.calls = nil
		for _, call := range calls {
			if b.killed() {
				return
			}
			call()
		}
		if len(b.inbox) == 0 {
			if !b.next.After(b.now) && !b.busy && len(b.owner.waiting) == 0 {
				b.t.Error("the next step is due at once, so the loop never rests")
			}
			return
		}
	}
}

// killed reports whether the process has been killed, and counts down to that. By default,
// it never is.
func (b *harness) killed() bool {
	if b.left > 0 {
		b.left--
	}
	return b.left == 0
}

// add adds an agent that has its own ring.
func (b *harness) add(id string, capacity int, h Holder) (w *ringbuf.Writer, mem memory) {
	b.t.Helper()
	mem, w, r := inMemory(b.t, capacity)
	b.step(Offer{Agent: Agent{ID: id, Path: id, Holder: h}, Reader: r, From: b})
	return w, mem
}

func (b *harness) push(n int) { b.t.Helper(); b.pushValues(n, 1) }

func (b *harness) pushValues(n, value int) {
	b.t.Helper()
	for range n {
		must.OK(b.t, b.writer.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, uint64(value))))
	}
}

func (b *harness) counted() uint64 {
	return b.owner.agents[agentPath].tally.Requests(tally.Transmit).Events
}

// count returns the number of notices of a kind.
func (b *harness) count(k notice.Kind) (n int) {
	for _, one := range b.notices {
		if one.Kind == k {
			n++
		}
	}
	return n
}

// harness implements Source.

func (b *harness) Close(r *ringbuf.Reader)       { b.call(func() { _ = r.Close() }) }
func (b *harness) Reopen(Agent, *ringbuf.Reader) { b.call(func() { b.reopen = true }) }
func (b *harness) Retire(Agent, *ringbuf.Reader) { b.call(func() { b.retired = true }) }

func (b *harness) Answer(_ Agent, _ *ringbuf.Reader, refused error) { b.refused = refused }

// harness implements env.

func (b *harness) save(batch *batch, ops []checkpoint.Op) {
	b.call(func() {
		b.batch = batch
		b.saves, b.pages = b.saves+1, b.pages+len(ops)
		for _, op := range ops {
			b.stored[slices.Index(checkpoint.Keys(), op.Key)] = op.Value
		}
		if b.saving != nil {
			b.saving()
		}
		if !b.hangs {
			b.inbox = append(b.inbox, saved{})
		}
	})
}

func (b *harness) reply(c *collect)       { b.call(func() { c.done(c.Collection) }) }
func (b *harness) report(n notice.Notice) { b.call(func() { b.notices = append(b.notices, n) }) }

func (b *harness) call(fn func()) { b.calls = append(b.calls, fn) }

// collect collects and delivers.
func (b *harness) collect() (list []Snapshot) {
	b.step(&collect{deadline: b.now.Add(hungSave), done: func(c Collection) {
		list = c.Snapshots
		b.export(list)
		b.inbox = append(b.inbox, delivered{c.number})
	}})
	return list
}

// The store has the totals and the ring still has the events, but the next process can't
// read a page of the ring to compare them.
func TestFaultWhileResumingCountsNothingTwice(t *testing.T) {
	b := started(t, true)
	b.push(3)
	b.hangs = true // the totals are stored, and the process crashes before it commits
	b.steps(2)
	if b.counted() != 3 || b.batch == nil {
		t.Fatalf("%d events are counted, save %v", b.counted(), b.batch)
	}
	b.hangs, b.err = false, errors.New("no such page")
	b.start(ringbuf.Consume, true)
	if b.count(notice.RingBroken) == 0 {
		t.Fatal("the fault isn't reported")
	}
	for range 3 { // it may happen again
		b.step()
		b.open(ringbuf.Consume)
	}
	b.err = nil
	b.step()
	b.open(ringbuf.Consume)
	b.push(1)
	b.step()
	if got := b.counted(); got != 4 {
		t.Errorf("%d events are counted, want 4", got)
	}
}

func TestExitedAgentIsRetired(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		b := newHarness(t)
		b.start(mode, true)
		b.push(3)
		b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
		before := b.collect()
		b.steps(70)
		b.collect()
		b.steps(2)
		if after := b.collect(); len(before) != 1 || before[0].Up != UpNo || len(after) > 0 {
			t.Errorf("%v: collected %+v, later %+v", mode, before, after)
		}
	}
}

// The clock of a virtual machine can be so coarse that two steps have the same time.
func TestEventsAfterACollectionAtTheSameTimeAreNotDelivered(t *testing.T) {
	b := started(t, false)
	b.push(3)
	var number uint64
	b.step(&collect{deadline: b.now.Add(hungSave), done: func(c Collection) { number = c.number }})
	b.push(3)
	b.stepIn(0, Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
	if b.counted() != 6 {
		t.Fatalf("%d events are counted, want 6", b.counted())
	}
	b.step(delivered{number})
	b.steps(70)
	if b.retired {
		t.Error("the agent was retired, although its last three events weren't delivered")
	}
}

// An idle agent isn't retired while its ring is closed.
func TestIdleAgentIsKeptWhenItsRingIsOpenedAgain(t *testing.T) {
	b := started(t, false)
	b.push(3)
	b.step()
	b.collect()
	b.steps(70)
	b.err = errors.New("no such page")
	b.push(1)
	b.steps(57)
	b.err = nil
	b.open(ringbuf.Consume)
	b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
	if b.steps(10); b.retired {
		t.Error("the agent is retired right after its ring was opened again")
	}
}

func TestOwnerWakesAtTheDeadlineOfACollection(t *testing.T) {
	b := started(t, true)
	b.hangs = true
	b.push(3)
	deadline := b.now.Add(time.Second + 20*time.Millisecond)
	b.step(&collect{deadline: deadline, done: func(Collection) {}})
	next := b.owner.step(b.now, nil)
	if next.After(deadline) {
		t.Errorf("the next step is %v after the deadline", next.Sub(deadline))
	}
	b.owner.batch.began = b.now.Add(-time.Millisecond) // not slow
	if next = b.owner.step(deadline.Add(-5*time.Millisecond), nil); next.After(deadline) {
		t.Errorf("the next step is %v after the deadline", next.Sub(deadline))
	}
}

// The next consumer may take seconds to accept the last collection. Only with a store, the next process knows what this
// one has counted since.
func TestRingsAreReadAfterTheLastCollectionOnlyWithAStore(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := started(t, saves)
		b.push(3)
		b.step(&collect{deadline: b.now.Add(hungSave), last: true, done: func(Collection) {}})
		b.push(5)
		b.step()
		b.push(7)
		if b.step(stop{b.now.Add(time.Minute)}); !b.owner.stopped {
			t.Fatal("the rings stay open, although everything is stored")
		}
		want, left := uint64(3), 12
		if saves {
			want, left = 15, 0
		}
		n, err := b.writer.Len()
		must.OK(t, err)
		if b.counted() != want || n != left || saves && b.storedEvents() != want {
			t.Errorf("%d events are counted and %d are in the ring, want %d and %d", b.counted(), n, want, left)
		}
	})
	b := started(t, false)
	b.err = errors.New("the disk fails")
	b.push(1)
	b.stepIn(0, &collect{deadline: b.now.Add(hungSave), last: true, done: func(Collection) {}})
	for range 3 {
		if b.stepIn(brokenWait); b.count(notice.RingBroken) != 1 {
			t.Fatalf("with a broken ring, notices are %v", b.notices)
		}
	}
}

// A message may arrive late. At a shutdown, a ring may be closed because its agent restarts.
func TestOwnerIgnoresUnknownAgentsAndStopsWithAClosedRing(t *testing.T) {
	b := started(t, false)
	b.step(Attended{ID: "/unknown"}, Gone{ID: "/unknown"}, Attributed{Agent: Agent{ID: "/unknown"}})
	b.restart()
	if b.step(stop{b.now.Add(time.Minute)}); !b.owner.stopped || b.agent().reader != nil {
		t.Errorf("stopped %v, reader %v", b.owner.stopped, b.agent().reader)
	}
}

func TestRingWithMoreEventsThanADrainReadsIsDueAtOnce(t *testing.T) {
	b := newHarnessOf(t, 2*maxPass)
	b.start(ringbuf.Consume, false)
	n, err := b.writer.PushBatch(slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)}, maxPass+10))
	must.OK(t, err)
	b.busy = true
	b.step()
	if b.next.After(b.now) || b.counted() != maxPass {
		t.Errorf("after one drain, %d events are counted, and the next one is in %v", b.counted(), b.next.Sub(b.now))
	}
	if b.stepIn(0); b.counted() != uint64(n) {
		t.Errorf("%d events are counted, want %d", b.counted(), n)
	}
}

// During shutdown, a scheduled collection can come right before the last one.
func TestCollectionRightAfterAnotherHasTheFill(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.start(ringbuf.Observe, saves)
		b.push(3)
		var fills []float64
		done := func(c Collection) { fills = append(fills, c.Snapshots[0].Totals.Utilization()) }
		deadline := b.now.Add(hungSave)
		b.step(&collect{deadline: deadline, done: done}, &collect{deadline: deadline, done: done, last: true})
		b.step()
		if len(fills) != 2 || fills[0] == 0 || fills[1] != fills[0] {
			t.Errorf("fills are %v", fills)
		}
	})
}

// The last agent of the first slice has a stream that has ended.
func TestCollectionOfManyAgentsHasEachStreamOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := started(t, saves)
		for i := range 2 * maxSlice {
			b.add(fmt.Sprint("/many-", i), 2, Holder{})
		}
		last := b.owner.order[maxSlice-1]
		b.owner.succeed(last, b.now, b.now)
		want, got := map[string]int{last.ID: 1}, make(map[string]int)
		for _, a := range b.owner.agents {
			want[a.ID]++
		}
		b.step(&collect{deadline: b.now.Add(time.Minute), done: func(c Collection) {
			for _, s := range c.Snapshots {
				got[s.ID]++
			}
		}})
		if !saves && b.next.After(b.now) {
			t.Errorf("the next slice is due in %v, want now", b.next.Sub(b.now))
		}
		b.steps(5)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("streams of each agent (-want +got)\n%s", d)
		}
	})
}

// The agents flush at different times, and each flush nearly fills a ring.
func TestRingsAreDrainedTogether(t *testing.T) {
	const rings, interval = 16, 100 * time.Millisecond
	b := started(t, false)
	flush := make(map[*ringbuf.Writer]time.Time)
	for i := range rings {
		w, _ := b.add(fmt.Sprint("/agent-", i), 64, Holder{})
		flush[w] = b.now.Add(time.Duration(rings-i)*time.Second + interval*time.Duration(i)/rings) // after the last one is added
	}
	wakes, dropped, began := 0, 0, b.now
	for b.now.Before(began.Add(3 * time.Second)) {
		b.stepIn(0)
		if b.now.After(began.Add(2 * time.Second)) {
			wakes++
		}
		for w, at := range flush {
			if !b.next.Before(at) {
				n, err := w.PushBatch(make([]ringbuf.Event, 60))
				must.OK(t, err)
				dropped += 60 - n
				flush[w] = at.Add(interval)
			}
		}
		b.now = b.next
	}
	if dropped > 0 || wakes > 120 { // every 12.5 ms, and some at the start of a burst
		t.Errorf("%d events didn't fit; %d wakes in a second, want at most 120", dropped, wakes)
	}
}

// The rings of all others wait for a round, and many containers may have full rings.
func TestContainerWithManyFullRingsCausesLittleWorkInOneRound(t *testing.T) {
	const capacity, rings, most = 1 << 16, 40, 2_200_000 // events; about 20 ms
	b := started(t, false)
	events := make([]ringbuf.Event, capacity-1)
	for i := range events {
		events[i] = ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)
	}
	full := make([]*ringbuf.Writer, rings)
	for i := range full {
		full[i], _ = b.add(fmt.Sprint("/full-", i), capacity, Holder{Pod: "pod"})
	}
	b.stepIn(time.Second)
	for _, w := range full {
		_, err := w.PushBatch(events)
		must.OK(t, err)
	}
	b.stepIn(time.Second)
	taken := 0
	for i := range full {
		taken += int(b.owner.agents[fmt.Sprint("/full-", i)].tally.Requests(tally.Transmit).Events)
	}
	if taken == 0 || taken > most {
		t.Errorf("%d events were taken, want 1 to %d", taken, most)
	}
}

// A container whose rings are always full delays no others. Small rings cost checkpoints instead
// of events, and events outside of transfers cost more.
func TestWorkForAContainerIsLimited(t *testing.T) {
	const large, small, rings, work = 1 << 16, 64, 100, maxWork * int(time.Second/workIn)
	container := Holder{Pod: "pod", Container: "hostile"}
	transfer := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, 1),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 1), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	failure := []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)}
	for name, tc := range map[string]struct {
		holder          Holder
		event           []ringbuf.Event // the events that are repeated
		rings, capacity int
		saves           bool
		least, most     int // events that are read in a second
	}{
		"large rings":            {container, transfer, 1, large, false, work - 2*large, work + 2*large},
		"small rings":            {container, transfer, rings, small, true, work / (saveWork + drainWork) * small / 2, work / saveWork * small},
		"large directory":        {Holder{Place: "/rings", Shared: true}, transfer, 1, large, false, 199 * (large - 1), 200 * (large - 1)},
		"directory with small":   {Holder{Place: "/rings", Shared: true}, transfer, rings, small, true, 100 * rings * (small - 1), 200 * rings * (small - 1)},
		"errors that are logged": {container, failure, 1, large, false, 0, work/20 + 2*large},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.handler.Error = func(*Agent, tally.Error) {}
			b.start(ringbuf.Consume, tc.saves)
			calm, _ := b.add("/calm", large, Holder{Pod: "pod", Container: "calm"})
			full := make([]*ringbuf.Writer, tc.rings)
			for i := range full {
				full[i], _ = b.add(fmt.Sprint("/full-", i), tc.capacity, tc.holder)
			}
			events := slices.Repeat(tc.event, tc.capacity/len(tc.event))[:tc.capacity-1]
			push := func(w *ringbuf.Writer, n int) (pushed int) {
				pushed, err := w.PushBatch(events[:n])
				must.OK(t, err)
				return pushed
			}
			second := func() (taken int) {
				for end := b.now.Add(time.Second); b.now.Before(end); {
					for _, w := range full {
						taken += push(w, len(events))
					}
					if push(calm, 1) != 1 {
						t.Fatal("the ring of the other container is full")
					}
					b.stepIn(5 * time.Millisecond)
				}
				return taken
			}
			seconds := 1
			if tc.holder == container {
				seconds = 2
			}
			for range seconds {
				if taken := second(); taken < tc.least || taken > tc.most {
					t.Errorf("%d events were taken in a second, want %d to %d", taken, tc.least, tc.most)
				}
			}
			reported := false
			for _, n := range b.notices {
				reported = reported || n.Kind == notice.BudgetReached && n.Container == container.Container
			}
			if limited := tc.holder == container; reported != limited {
				t.Errorf("reported: %v, limited: %v", reported, limited)
			}
		})
	}
}

// No real container has as many agents that fill a ring in each run interval.
func TestContainerWith64BusyAgentsIsNotLimited(t *testing.T) {
	const slots = 4096 // NIXL's default
	eachStore(t, func(t *testing.T, saves bool) {
		b := newHarness(t)
		b.start(ringbuf.Consume, saves)
		var writers []*ringbuf.Writer
		for i := range 64 {
			w, _ := b.add(fmt.Sprint("/busy-", i), slots, Holder{Pod: "pod", Container: "busy"})
			writers = append(writers, w)
		}
		events := slices.Repeat([]ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, 1),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 1), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		}, slots/4)[:slots-1]
		for range 20 {
			for i, w := range writers {
				if n, err := w.PushBatch(events); n != len(events) || err != nil {
					t.Fatalf("agent %d: %d events fit, want %d: %v", i, n, len(events), err)
				}
			}
			b.stepIn(100 * time.Millisecond)
		}
		if n := b.count(notice.BudgetReached); n > 0 {
			t.Errorf("%d notices say that the container causes too much work", n)
		}
	})
}

// The simulation checks that no other agent gives way.
func TestExitedAgentGivesWayAtTheLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, saves bool) {
		b := started(t, saves)
		b.push(3)
		b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
		b.collect()
		b.step()
		b.owner.cfg.MaxRings = 1
		if b.add("/next", 64, Holder{}); !b.retired || b.count(notice.RingRetired) != 1 || b.owner.agents["/next"] == nil {
			t.Errorf("retired %v, notices %v", b.retired, b.notices)
		}
	})
}

// crowded is a message that there are too many rings.
type crowded struct{ rings int }

func (m crowded) apply(o *owner, _ time.Time) {
	for range m.rings {
		o.giveWay(Holder{}, func(*agent) bool { return true })
	}
}

// A process can make its ring look like that of an agent that restarts all the time.
func TestRingThatRestartsAgainSoonWaitsUntilItIsOpened(t *testing.T) {
	b := started(t, false)
	opened, written := 0, 0
	for range 300 {
		b.startAgent(64)
		b.push(1)
		written++
		if b.stepIn(10 * time.Millisecond); b.reopen && b.agent().reader == nil {
			r, err := ringbuf.NewReader(b.mem, b.mem, ringbuf.Consume)
			must.OK(t, err)
			b.stepIn(0, Offer{Agent: Agent{ID: agentPath, Path: agentPath}, Reader: r, From: b})
			b.reopen = false
			opened++
		}
	}
	if opened < 3 || opened > 7 { // twice per second
		t.Errorf("the ring was opened %d times in three seconds", opened)
	}
	b.reopen = false
	b.step()
	b.steps(2)
	if b.agent().reader == nil && !b.reopen {
		t.Error("the ring isn't opened again")
	}
}

// The storage hangs, and the slots that were read are compared whenever there are more.
func TestComparedSlotsAreWork(t *testing.T) {
	const capacity, held = 1 << 14, 1 << 13
	b := started(t, true)
	b.hangs = true
	h := Holder{Pod: "pod"}
	w, _ := b.add("/compared", capacity, h)
	a := b.owner.agents["/compared"]
	drain := func(n int) (work int) {
		_, err := w.PushBatch(slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)}, n))
		must.OK(t, err)
		clear(b.owner.work)
		b.owner.drain(a, b.now)
		return b.owner.work[h]
	}
	one := drain(1) - drainWork
	drain(held - 1)
	got := []int{drain(0), drain(1)}
	if want := []int{drainWork, drainWork + one + held*16/compareBytes}; a.held() != held+1 || !slices.Equal(got, want) {
		t.Errorf("with %d events held, drains without and with a new event are %v of work, want %v", a.held(), got, want)
	}
}

// fill writes many events.
func (b *harness) fill(n int) {
	b.t.Helper()
	_, err := b.writer.PushBatch(slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)}, n))
	must.OK(b.t, err)
}

// The old ring can't be opened again, so even more events than a drain reads are counted. But one step doesn't read all
// of them.
func TestReplacedRingIsDrainedCompletely(t *testing.T) {
	const events = 3*maxPass + 10
	b := newHarnessOf(t, 4*maxPass)
	b.start(ringbuf.Consume, false)
	b.step()
	b.fill(events)
	_, _, r := inMemory(t, 64)
	offer := Offer{Agent: Agent{ID: agentPath, Path: agentPath}, Reader: r, From: b}
	b.busy = true
	if b.step(offer); !errors.Is(b.refused, ErrBusy) || b.counted() > 2*maxPass {
		t.Errorf("the answer is %v, and %d events are counted in one step", b.refused, b.counted())
	}
	for b.refused != nil && b.agent().reader != r {
		b.stepIn(0, offer)
	}
	if b.counted() != events {
		t.Errorf("%d events are counted, want %d", b.counted(), events)
	}
}

func TestAgentGivesWayOnlyAfterItsTotalsAreStored(t *testing.T) {
	b := started(t, true)
	b.step()
	b.hangs = true
	b.push(3)
	b.collect()
	b.steps(9) // the collection waits for a limited time
	b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
	b.owner.cfg.MaxRings = 1
	if b.add("/next", 64, Holder{}); b.retired || b.owner.agents["/next"] != nil {
		t.Error("the agent gives way, although its events are neither stored nor committed")
	}
	b.hangs = false
	b.step(saved{})
	b.collect()
	b.steps(2)
	if b.add("/next", 64, Holder{}); !b.retired {
		t.Error("not retired after the save")
	}
}

// running adds an agent whose ring isn't open.
func (o *owner) running(id string, h Holder) *agent {
	a := &agent{Agent: Agent{ID: id, Holder: h}, page: checkpoint.PageOf(id), source: &harness{}, tally: tally.NewAgent(o.cfg.Shape)}
	o.add(a, time.Time{})
	o.enter(a)
	o.rings[h]++
	return a
}

// After the exit of an agent, the next process may write to the same ring before the kernel is asked again.
func TestRingStaysOpenIfTheNextProcessHasWritten(t *testing.T) {
	b := started(t, false)
	b.push(1)
	b.step(Gone{ID: agentPath, Reader: b.reader}, Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
	b.step()
	b.push(2)
	b.steps(10)
	if b.agent().reader == nil {
		t.Error("the ring is closed")
	}
	if got := b.counted(); got != 3 {
		t.Errorf("%d events are counted, want 3", got)
	}
}
