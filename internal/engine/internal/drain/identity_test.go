// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openOther opens a second ring, at another path, whose agent has the same ID.
func (b *harness) openOther(events int) *ringbuf.Reader {
	b.t.Helper()
	_, b.writer, b.reader = inMemory(b.t, 64)
	b.push(events)
	b.step(Opened{Agent: Agent{ID: agentPath, Name: "agent", Dir: "/rings", Path: "/other/agent"}, Reader: b.reader, From: b})
	return b.reader
}

func (b *harness) agent() *agent { return b.owner.agents[agentPath] }

// The kernel may not answer, and the container may have had an agent that exited before.
func TestRingThatIsGoneIsClosedWhenItsEventsAreCounted(t *testing.T) {
	for name, before := range map[string]func(*harness){
		"nothing": func(*harness) {},
		"another agent exited before": func(h *harness) {
			h.step(Attended{ID: agentPath, Reader: h.reader, Known: true})
			h.step()
			h.step(Attended{ID: agentPath, Reader: h.reader, Open: true, Known: true})
		},
	} {
		for _, saves := range []bool{false, true} {
			for _, answers := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, saves %t, answers %t", name, saves, answers), func(t *testing.T) {
					h := started(t, saves)
					h.step()
					before(h)
					h.push(10)
					messages := []Message{Gone{ID: agentPath, Reader: h.reader}, Attended{ID: agentPath, Reader: h.reader}}
					if !answers {
						messages = messages[:1]
					}
					h.step(messages...)
					h.steps(5)
					if got := h.counted(); got != 10 || h.agent().reader != nil || h.agent().exit.up != UpNo {
						t.Errorf("counted %d events, want 10; open: %v, up: %v", got, h.agent().reader != nil, h.agent().exit.up)
					}
					if got := h.collect(); len(got) != 1 {
						t.Errorf("%d agents are reported, want the exited agent", len(got))
					}
				})
			}
		}
	}
}

// Events that aren't committed would be counted again once the ring is opened again.
func TestRingStaysOpenUntilItsEventsAreStored(t *testing.T) {
	for name, exit := range map[string]func(*harness) Message{
		"gone":   func(h *harness) Message { return Gone{ID: agentPath, Reader: h.reader} },
		"exited": func(h *harness) Message { return Attended{ID: agentPath, Reader: h.reader, Known: true} },
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
			b.step(saved{batch: b.batch})
			b.steps(3)
			if a := b.agent(); a != nil && a.reader != nil || !b.retired || b.reader.Uncommitted() > 0 {
				t.Errorf("retired: %v, with %d events that aren't committed", b.retired, b.reader.Uncommitted())
			}
		})
	}
}

// Discovery no longer finds the directory, but the next scan finds a process that has the ring mapped.
func TestRingThatAProcessStillHasMappedStaysOpen(t *testing.T) {
	b := started(t, false)
	b.step(Gone{ID: agentPath, Reader: b.reader})
	b.step(Attended{ID: agentPath, Reader: b.reader, Open: true, Known: true})
	if b.steps(20); b.agent().reader == nil {
		t.Error("the ring is closed")
	}
}

// The events that are read with the message about the exit may be older than the exit.
func TestAgentThatWritesAgainHasNotExited(t *testing.T) {
	h := started(t, false)
	exited := []Message{Attended{ID: agentPath, Reader: h.reader, Known: true}}
	for _, want := range []Up{UpNo, UpUnknown} {
		h.push(1)
		if h.step(exited...); h.agent().exit.up != want {
			t.Errorf("up is %v, want %v", h.agent().exit.up, want)
		}
		exited = nil
	}
}

// Two agents with one ID can't share their totals, because each would look like a restart of
// the other.
func TestAgentWithTheIDOfARunningOneIsRefused(t *testing.T) {
	b := started(t, false)
	b.push(10)
	b.step(Attended{ID: agentPath, Reader: b.reader, Open: true, Known: true})
	first := b.writer
	r := b.openOther(5)
	if len(b.refused) != 1 || b.refused[0] != r {
		t.Fatal("the second agent's ring wasn't refused")
	}
	b.writer = first
	b.push(1)
	b.step()
	if got := b.counted(); got != 11 || b.agent().Path != agentPath {
		t.Errorf("counted %d events at %s, want 11 at %s", got, b.agent().Path, agentPath)
	}
	if got := b.agent().tally.Snapshot().Requests(tally.Transmit).Events; got != 11 {
		t.Errorf("the snapshot has %d events", got)
	}
}
