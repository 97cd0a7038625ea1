// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// faulty is the Backing of a ring in plain memory. If err isn't nil, accesses fail with it.
type faulty struct {
	memory
	err *error
}

func (f faulty) Guard(fn func()) error {
	if *f.err != nil {
		return *f.err
	}
	return f.memory.Guard(fn)
}

// harness is an owner with one ring, its source, and a store.
type harness struct {
	t      *testing.T
	owner  *owner
	now    time.Time
	mem    memory
	err    error // error of accesses to the ring's memory
	writer *ringbuf.Writer
	reader *ringbuf.Reader

	stored  map[string][]byte
	inbox   []Message
	hangs   bool   // whether the store doesn't answer saves
	batch   *batch // the last save
	notices []notice.Notice
	reopen  bool
	retired bool
	refused []*ringbuf.Reader
}

const agentPath = "/rings/agent"

func newHarness(t *testing.T) *harness {
	t.Helper()
	b := &harness{t: t, now: time.Unix(1_700_000_000, 0), mem: make(memory, ringbuf.V4.FileSize(64)), stored: make(map[string][]byte)}
	w, err := ringbuf.NewWriter(b.mem, b.mem, ringbuf.V4, 64)
	if err != nil {
		t.Fatal(err)
	}
	b.writer = w
	return b
}

// start starts a new process.
func (b *harness) start(mode ringbuf.Mode, saves bool) {
	b.t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.owner = newOwner(&Config{Shape: shape, Mode: mode, RunInterval: 100 * time.Millisecond, StaleAfter: time.Minute}, saves)
	b.batch, b.notices, b.reopen = nil, nil, false
	b.open(mode)
}

func (b *harness) open(mode ringbuf.Mode) {
	b.t.Helper()
	faults := b.err
	b.err = nil // opening doesn't access the mapping
	r, err := ringbuf.NewReader(b.mem, faulty{b.mem, &b.err}, mode)
	if err != nil {
		b.t.Fatal(err)
	}
	b.reader, b.err = r, faults
	b.step(Opened{Agent: Agent{ID: agentPath, Name: "agent", Dir: "/rings", Path: agentPath}, Reader: r, From: b})
}

// step advances the time by a second, and performs the owner's effects.
func (b *harness) step(messages ...Message) {
	b.now = b.now.Add(time.Second)
	for b.inbox = append(b.inbox, messages...); ; {
		in := b.inbox
		b.inbox = nil
		_, effects := b.owner.step(b.now, in)
		for _, e := range effects {
			e.run(b)
		}
		if len(b.inbox) == 0 {
			return
		}
	}
}

func (b *harness) push(n int) {
	b.t.Helper()
	for range n {
		if err := b.writer.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)); err != nil {
			b.t.Fatal(err)
		}
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

func (b *harness) Close(r *ringbuf.Reader)           { _ = r.Close() }
func (b *harness) Reopen(Agent, *ringbuf.Reader)     { b.reopen = true }
func (b *harness) Retire(Agent, *ringbuf.Reader)     { b.retired = true }
func (b *harness) Refuse(_ Agent, r *ringbuf.Reader) { b.refused = append(b.refused, r) }

// harness implements env.

func (b *harness) load(path, key string) {
	b.inbox = append(b.inbox, loaded{id: path, value: b.stored[key]})
}

func (b *harness) save(batch *batch, ops []checkpoint.Op) {
	b.batch = batch
	for _, op := range ops {
		b.stored[op.Key] = op.Value
	}
	if !b.hangs {
		b.inbox = append(b.inbox, saved{batch: batch})
	}
}

func (b *harness) forget(key string)      { delete(b.stored, key) }
func (b *harness) reply(c *collect)       { c.done(collected{number: c.number, snapshots: c.snapshots}) }
func (b *harness) report(n notice.Notice) { b.notices = append(b.notices, n) }

// collect collects and delivers.
func (b *harness) collect() (list []Snapshot) {
	b.step(&collect{deadline: b.now.Add(hungSave), done: func(c collected) {
		list = c.snapshots
		b.inbox = append(b.inbox, delivered{c.number})
	}})
	return list
}

// The store has the totals and the ring still has the events, but the next process can't
// read a page of the ring to compare them.
func TestFaultWhileResumingCountsNothingTwice(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, true)
	b.push(3)
	b.hangs = true // the totals are stored, and the process crashes before it commits
	b.step()
	b.step()
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
	for name, saves := range map[string]bool{"with a store": true, "without": false} {
		for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				b := newHarness(t)
				b.start(mode, saves)
				b.push(3)
				b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
				if list := b.collect(); len(list) != 1 || list[0].Up != UpNo {
					t.Fatalf("collected %+v", list)
				}
				for range 70 {
					b.step()
				}
				b.collect()
				for range 3 {
					b.step()
				}
				if !b.retired || len(b.collect()) > 0 {
					t.Error("the agent is still reported")
				}
			})
		}
	}
}

func TestHangFailureAndRecoveryOfTheStoreAreReported(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, true)
	b.hangs = true
	b.push(3)
	for range 8 {
		b.step()
	}
	b.collect()
	if b.count(notice.StoreHangs) != 1 || b.count(notice.ExportUnsaved) == 0 {
		t.Errorf("notices are %v", b.notices)
	}
	b.step(saved{batch: b.batch, err: errors.New("disk full")})
	if b.count(notice.StoreFailed) != 1 {
		t.Errorf("notices are %v", b.notices)
	}
	b.hangs = false
	for range 3 {
		b.step()
	}
	if b.count(notice.StoreRecovered) != 1 {
		t.Errorf("notices are %v", b.notices)
	}
}

func TestOwnerWakesAtTheDeadlineOfACollection(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, true)
	b.hangs = true
	b.push(3)
	deadline := b.now.Add(time.Second + 20*time.Millisecond)
	b.step(&collect{deadline: deadline, done: func(collected) {}})
	next, _ := b.owner.step(b.now, nil)
	if next.After(deadline) {
		t.Errorf("the next step is %v after the deadline", next.Sub(deadline))
	}
	b.owner.batch.began = b.now.Add(-time.Millisecond) // not slow
	if next, _ = b.owner.step(deadline.Add(-5*time.Millisecond), nil); next.After(deadline) {
		t.Errorf("the next step is %v after the deadline", next.Sub(deadline))
	}
}

// During shutdown, a scheduled collection can come right before the last one.
func TestCollectionRightAfterAnotherHasTheFill(t *testing.T) {
	for name, saves := range map[string]bool{"with a store": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.start(ringbuf.Observe, saves)
			b.push(3)
			var fills []float64
			done := func(c collected) { fills = append(fills, c.snapshots[0].Totals.Utilization()) }
			deadline := b.now.Add(hungSave)
			b.step(&collect{deadline: deadline, done: done}, &collect{deadline: deadline, done: done, last: true})
			b.step()
			if len(fills) != 2 || fills[0] == 0 || fills[1] != fills[0] {
				t.Errorf("fills are %v", fills)
			}
		})
	}
}

// The agents flush at different times, and each flush nearly fills a ring.
func TestRingsAreDrainedTogether(t *testing.T) {
	const rings, interval = 16, 100 * time.Millisecond
	b := newHarness(t)
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b.owner = newOwner(&Config{Shape: shape, Mode: ringbuf.Consume, RunInterval: interval, StaleAfter: time.Minute}, false)
	var writers []*ringbuf.Writer
	var flush []time.Time
	for i := range rings {
		mem := make(memory, ringbuf.V4.FileSize(64))
		w, err := ringbuf.NewWriter(mem, mem, ringbuf.V4, 64)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ringbuf.NewReader(mem, mem, ringbuf.Consume)
		if err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprint("/rings/agent-", i)
		b.owner.step(b.now, []Message{Opened{Agent: Agent{ID: path, Name: path, Dir: "/rings", Path: path}, Reader: r, From: b}})
		writers, flush = append(writers, w), append(flush, b.now.Add(interval*time.Duration(i)/rings))
	}
	wakes, dropped := 0, 0
	began := b.now
	for b.now.Before(began.Add(3 * time.Second)) {
		next, _ := b.owner.step(b.now, nil)
		if b.now.After(began.Add(2 * time.Second)) {
			wakes++
		}
		for i, w := range writers {
			if !next.Before(flush[i]) {
				n, err := w.PushBatch(make([]ringbuf.Event, 60))
				if err != nil {
					t.Fatal(err)
				}
				dropped += 60 - n
				flush[i] = flush[i].Add(interval)
			}
		}
		b.now = next
	}
	if dropped > 0 {
		t.Errorf("%d events didn't fit", dropped)
	}
	if wakes > 60 { // every 25 ms, and some at the start of a burst
		t.Errorf("%d wakes in a second", wakes)
	}
}
