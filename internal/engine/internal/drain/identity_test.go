// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openOther opens a second ring, at another path, whose agent has the same ID and has written an event.
func (b *harness) openOther() {
	b.t.Helper()
	_, b.writer, b.reader = inMemory(b.t, 64)
	b.push(1)
	b.step(Offer{Agent: Agent{ID: agentPath, Name: "agent", Dir: "/rings", Path: "/other/agent"}, Reader: b.reader, From: b})
}

func (b *harness) agent() *agent { return b.owner.agents[agentPath] }

// The kernel may not answer, and the container may have had an agent that exited before.
func TestRingThatIsGoneIsClosedWhenItsEventsAreCounted(t *testing.T) {
	for _, c := range []struct{ before, saves, answers bool }{{false, false, false}, {false, true, true}, {true, true, false}, {true, false, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			b := started(t, c.saves)
			b.step()
			if c.before {
				b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
				b.step()
				b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpYes})
			}
			b.push(10)
			messages := []Message{Gone{ID: agentPath, Reader: b.reader}}
			if c.answers {
				messages = append(messages, Attended{ID: agentPath, Reader: b.reader})
			}
			b.step(messages...)
			b.steps(5)
			type state struct {
				Open     bool
				Up       Up
				Counted  uint64
				Reported int
			}
			if d := cmp.Diff(state{false, UpNo, 10, 1}, state{b.agent().reader != nil, b.agent().exit.up, b.counted(), len(b.collect())}); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Events that aren't committed would be counted again once the ring is opened again.
func TestRingStaysOpenUntilItsEventsAreStored(t *testing.T) {
	for name, exit := range map[string]func(*harness) Message{
		"gone":   func(h *harness) Message { return Gone{ID: agentPath, Reader: h.reader} },
		"exited": func(h *harness) Message { return Attended{ID: agentPath, Reader: h.reader, Up: UpNo} },
	} {
		t.Run(name, func(t *testing.T) {
			b := started(t, true)
			b.step()
			b.hangs = true
			b.push(1)
			b.step()
			b.step(exit(b))
			b.collect()
			b.steps(70)
			if a := b.agent(); a == nil || a.reader == nil || a.delivered != a.news {
				t.Fatal("the ring was closed before its events were stored, or its last events weren't delivered")
			}
			b.hangs = false
			b.step(saved{})
			b.steps(3)
			if a := b.agent(); a != nil && a.reader != nil || !b.retired || b.reader.Uncommitted() > 0 {
				t.Errorf("retired: %v, with %d events that aren't committed", b.retired, b.reader.Uncommitted())
			}
		})
	}
}

// Another file has replaced the ring while a message about the exit of its process was under way.
func TestMessagesAboutAnEarlierRingAreIgnored(t *testing.T) {
	b := started(t, false)
	earlier := b.reader
	b.step()
	b.openOther()
	b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpYes})
	b.step(Attended{ID: agentPath, Reader: earlier, Up: UpNo}, Gone{ID: agentPath, Reader: earlier})
	if a := b.agent(); a.reader != b.reader || a.exit.up != UpYes || !a.exit.gone.IsZero() {
		t.Errorf("the agent, which is running, is in the state %+v", a.exit)
	}
}

// Discovery no longer finds the directory, but the next scan finds a process that has the ring mapped.
func TestRingThatAProcessStillHasMappedStaysOpen(t *testing.T) {
	b := started(t, false)
	b.step(Gone{ID: agentPath, Reader: b.reader})
	b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpYes})
	if b.steps(20); b.agent().reader == nil {
		t.Error("the ring is closed")
	}
}

// A container that causes too much work may have written events since the last drain of a ring that is closed.
func TestRingThatIsClosedContinuesAfterItsLastDrain(t *testing.T) {
	b := started(t, false)
	b.push(3)
	b.step(Gone{ID: agentPath, Reader: b.reader})
	b.agent().exit.empty, b.agent().due = time.Time{}, b.now.Add(time.Hour)
	b.push(2)
	for b.agent().reader != nil {
		b.step()
	}
	b.push(1)
	b.open(ringbuf.Consume)
	b.step()
	if b.counted() != 6 || b.count(notice.RingForeign) > 0 {
		t.Errorf("%d events are counted, want 6; reported: %v", b.counted(), b.notices)
	}
}

// A ring can have more events than a drain reads, and the last ones can look like those of a restart for a moment.
func TestExitIsCompleteOnceADrainHasLeftNothing(t *testing.T) {
	e := exit{up: UpNo}
	for i, left := range []bool{true, true, false} {
		if e.drained(1, !left, time.Unix(int64(i), 0)); e.final() == left {
			t.Errorf("after drain %d, final is %v", i+1, e.final())
		}
	}
}

// Nobody asks the kernel about a ring that isn't open.
func TestNothingIsKnownAboutAnAgentWhoseRingBroke(t *testing.T) {
	b := started(t, false)
	b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpYes})
	b.err = errors.New("no such page")
	b.push(1)
	b.step()
	if list := b.collect(); b.agent().reader != nil || len(list) != 1 || list[0].Up != UpUnknown {
		t.Errorf("collected %+v, with the reader %v", list, b.agent().reader)
	}
}

// The events that are read with the first message about the exit may be older than the exit. The next
// message may be about the exit of the next process.
func TestAgentThatWritesAgainHasNotExited(t *testing.T) {
	for messages := 1; messages <= 2; messages++ {
		b := started(t, false)
		exited := []Message{Attended{ID: agentPath, Reader: b.reader, Up: UpNo}}
		for i, want := range []Up{UpNo, UpUnknown} {
			b.push(1)
			if b.step(exited[:min(1, messages-i)]...); b.agent().exit.up != want {
				t.Errorf("after event %d, up is %v, want %v", i+1, b.agent().exit.up, want)
			}
		}
	}
}
