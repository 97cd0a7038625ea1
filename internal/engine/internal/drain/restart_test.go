// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func (b *harness) register(bytes uint64) {
	b.t.Helper()
	if err := b.writer.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, bytes)); err != nil {
		b.t.Fatal(err)
	}
}

// The positions don't show a restart while the reader is at position 0. The memory of the
// new process is known only if the exit of the old one was seen.
func TestMemoryAfterARestartAtPosition0IsUnknownRatherThanWrong(t *testing.T) {
	const capacity, old, next = 64, 1000, 55
	for _, before := range []int{0, capacity, 2 * capacity} {
		for _, saves := range []bool{false, true} {
			for _, crashes := range []bool{false, true} {
				for _, restarts := range []bool{false, true} {
					for _, exitSeen := range []bool{false, true} {
						if crashes && !saves || exitSeen && !restarts {
							continue
						}
						name := fmt.Sprintf("%d events before, saves %t, crashes %t, restarts %t, exit seen %t", before, saves, crashes, restarts, exitSeen)
						t.Run(name, func(t *testing.T) {
							b := newHarnessOf(t, capacity)
							b.start(ringbuf.Consume, saves)
							for range before {
								b.register(old)
								b.step()
								b.step()
							}
							if got := b.reader.Committed(); got != 0 {
								t.Fatalf("the committed position is %d", got)
							}
							if crashes {
								b.start(ringbuf.Consume, saves)
							}
							if exitSeen {
								b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
								b.step()
							}
							if restarts {
								b.startAgent(capacity)
							}
							b.register(next)
							b.step()
							want, wantKnown := int64(before*old+next), before == 0 || !restarts || exitSeen
							if restarts {
								want = next
							}
							got, known := b.owner.agents[agentPath].tally.MemoryUsage()
							if known != wantKnown || known && got != want {
								t.Errorf("%d bytes (known: %v), want %d (%v)", got, known, want, wantKnown)
							}
							counted := uint64(b.count(notice.RingRestart))
							if total := b.owner.agents[agentPath].tally.Restarts(); total != counted || (counted == 1) != exitSeen {
								t.Errorf("%d restarts are counted, %d are reported", total, counted)
							}
						})
					}
				}
			}
		}
	}
}

// A probe can be older than the restart that the checkpoint shows.
func TestRestartIsReportedOnceDespiteAnEarlierProbe(t *testing.T) {
	for _, probedAgain := range []bool{false, true} {
		b := newHarness(t)
		b.start(ringbuf.Consume, true)
		b.push(10)
		b.step()
		b.step()
		b.startAgent(64)
		b.start(ringbuf.Consume, true)
		b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
		b.step()
		want := 1
		if probedAgain { // the process exits before it writes an event
			want = 2
			b.step(Attended{ID: agentPath, Reader: b.reader, Open: true, Known: true})
			b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
			b.step()
		}
		b.push(5)
		b.step()
		if got := b.agent().tally.Restarts(); got != uint64(want) || b.count(notice.RingRestart) != want || b.counted() != 15 {
			t.Errorf("probed again: %v: %d restarts are counted and %d reported, want %d; %d events, want 15",
				probedAgain, got, b.count(notice.RingRestart), want, b.counted())
		}
	}
}
