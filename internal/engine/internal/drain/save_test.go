// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A ring is saved soon enough for its agent to drop no event, but otherwise only once per second.
func TestRingIsSavedIfItIsAQuarterFullOrAfterASecond(t *testing.T) {
	for _, c := range []struct {
		events int
		after  time.Duration // of the drain
		want   int           // saves
	}{{15, 0, 0}, {16, 0, 1}, {1, saveEvery - time.Millisecond, 0}, {1, saveEvery, 1}} {
		b := started(t, true)
		b.push(1) // the first commit is followed by another save
		b.steps(3)
		b.push(c.events)
		b.saves = 0
		b.stepIn(30 * time.Millisecond)
		if b.stepIn(c.after); b.saves != c.want {
			t.Errorf("%d events after %v: %d saves, want %d", c.events, c.after, b.saves, c.want)
		}
	}
}

// Events that are committed without a checkpoint are lost in a crash, so this waits until the ring would
// fill up otherwise.
func TestRingIsCommittedWithoutACheckpointOnlyBeforeItFillsUp(t *testing.T) {
	for name, c := range map[string]struct {
		least  int // events that are committed
		notice []string
		fails  bool
	}{
		"slow storage":       {32, []string{"WARN ring was about to fill up before its checkpoint was stored, so events were committed without a checkpoint"}, false},
		"storage that fails": {16, nil, true},
	} {
		for events := c.least - 1; events <= c.least; events++ {
			b := started(t, true)
			b.step()
			b.hangs = true
			b.push(1)
			b.step()
			b.step() // a save begins
			if c.fails {
				b.step(saved{errors.New("disk full")})
			}
			b.push(events - 1)
			b.notices = nil
			for range slowSave / (slowSave / 4) {
				b.stepIn(30 * time.Millisecond)
			}
			var want []string
			left := events
			if events == c.least {
				want, left = c.notice, 0
			}
			if d := cmp.Diff(want, b.reported()) + cmp.Diff(left, b.agent().held()); d != "" {
				t.Errorf("%s, %d events: notices and events that aren't committed (-want +got)\n%s", name, events, d)
			}
		}
	}
}

// If only one of them were stored, a crash would count the events of the other one again.
func TestStreamThatEndedIsSavedWithItsAgent(t *testing.T) {
	b := started(t, true)
	for i := range maxSlice {
		b.add(fmt.Sprint("/busy-", i), 64, Holder{})
	}
	b.step()
	for _, a := range b.owner.order {
		a.dirty = true
	}
	last := b.owner.order[maxSlice-1] // in the save
	b.owner.lastSaved = nil
	b.owner.succeed(last, b.now, b.now)
	b.hangs = true
	b.step()
	saved := make(map[string]int)
	for _, one := range b.batch.tickets {
		saved[one.agent.ID]++
	}
	if len(saved) != maxSlice || saved[last.ID] != 2 {
		t.Errorf("%d agents are in the save, want %d; %d streams of the last one, want 2", len(saved), maxSlice, saved[last.ID])
	}
}

// Otherwise, totals that aren't stored would count as stored, and their agent could give way.
func TestSaveThatFailedIsRepeated(t *testing.T) {
	b := started(t, true)
	b.step()
	b.hangs = true
	b.agent().dirty = true // as after a commit without a checkpoint
	b.step()
	b.step(saved{errors.New("disk full")})
	if !b.agent().unsaved() {
		t.Error("the totals count as stored")
	}
	b.hangs = false
	b.steps(3)
	if b.agent().unsaved() {
		t.Error("the totals aren't stored")
	}
}

// With more busy agents than a save has, and a slow store, each agent must be saved before its ring is full.
func TestBusyAgentsAreSavedInTurn(t *testing.T) {
	b := started(t, true)
	const agents = 3 * maxSlice
	var writers []*ringbuf.Writer
	for i := range agents {
		w, _ := b.add(fmt.Sprint("/busy-", i), 64, Holder{})
		writers = append(writers, w)
	}
	b.hangs = true
	stored := make(map[string]int)
	for range 6 {
		for _, w := range writers {
			_, err := w.PushBatch(make([]ringbuf.Event, 20))
			must.OK(t, err)
		}
		b.stepIn(30 * time.Millisecond)
		for _, one := range b.batch.tickets {
			stored[one.agent.ID]++
		}
		b.inbox = append(b.inbox, saved{})
	}
	for id, n := range stored {
		if n != 2 {
			t.Errorf("%s is in %d of 6 saves, want 2", id, n)
		}
	}
	if len(stored) != agents {
		t.Errorf("%d agents were saved, want %d", len(stored), agents)
	}
}

// The agent moves its read position during each save, so its checkpoint changes. The page is large because
// of other agents.
func TestBytesThatAContainerStoresAreLimited(t *testing.T) {
	const page, many = 4 << 20, 1000
	b := started(t, true)
	w, mem := b.add("/hostile", 64, Holder{Pod: "pod", Container: "hostile"})
	_, err := w.PushBatch(make([]ringbuf.Event, 40))
	must.OK(t, err)
	other := "/other"
	for checkpoint.PageOf(other) != checkpoint.PageOf("/hostile") {
		other += "-"
	}
	b.owner.pages.Put(&checkpoint.Entry{ID: other, Name: strings.Repeat("x", page), Totals: new(tally.State)})
	b.step()
	b.saves = 0
	b.saving = func() {
		if b.saves < many {
			mem[8] = byte(1 + b.saves%40) // the read position
		}
	}
	mem[8] = 1
	if b.step(); b.saves == 0 || b.saves > maxWork/(page/workBytes)+1 {
		t.Errorf("%d saves of %d bytes in a step", b.saves, page)
	}
	b.saving = nil
	b.steps(2)
	if held := b.owner.agents["/hostile"].held(); held > 0 {
		t.Errorf("%d events aren't committed later", held)
	}
}

// A page is written as a whole, so a save of many agents must not touch all pages.
func TestSavesOfManyAgentsWriteEachPageOnce(t *testing.T) {
	const agents = 16 * maxSlice
	b := started(t, true)
	b.step()
	for i := range agents {
		b.owner.running(fmt.Sprintf("/rings/agent-%d", i), Holder{}).dirty = true
	}
	b.saves, b.pages = 0, 0
	b.steps(2)
	if b.saves != agents/maxSlice || b.pages > 64+2*b.saves {
		t.Errorf("%d saves have written %d pages, want %d saves and each of 64 pages about once", b.saves, b.pages, agents/maxSlice)
	}
}

// A page may have changed only because an agent was dropped. Otherwise, its entry would be loaded at the next start.
func TestPagesOfASaveThatFailedAreWrittenAgain(t *testing.T) {
	b, dropped := started(t, true), "/dropped"
	for checkpoint.PageOf(dropped) == checkpoint.PageOf(agentPath) {
		dropped += "-"
	}
	b.steps(3)
	b.owner.pages.Remove(dropped)
	b.hangs = true
	b.step()
	b.stored[checkpoint.PageOf(dropped)] = nil
	b.hangs = false
	b.step(saved{errors.New("disk full")})
	if b.stepIn(saveEvery); b.stored[checkpoint.PageOf(dropped)] == nil {
		t.Error("the page isn't written again")
	}
}

// The agent can't use their slots yet.
func TestFillIncludesEventsThatAreNotCommitted(t *testing.T) {
	b := started(t, true)
	b.hangs = true
	b.push(1)
	b.step()
	b.agent().tally.Snapshot() // the interval in which it was read
	b.step()
	if got := b.agent().tally.Utilization(); got != 1.0/63 {
		t.Errorf("the fill is %v, want 1/63", got)
	}
}

// A collection that can't wait for the store must not leave agents out.
func TestCollectionHasAllAgentsWhileTheStoreFails(t *testing.T) {
	const others = 3 * maxSlice
	b := started(t, true)
	for i := range others {
		b.add(fmt.Sprint("/other-", i), 64, Holder{})
	}
	b.hangs = true
	b.agent().dirty = true
	b.step()
	b.step(saved{errors.New("disk full")})
	if got := len(b.collect()); got != others+1 {
		t.Errorf("%d agents are collected, want %d", got, others+1)
	}
}
