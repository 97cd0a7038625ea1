// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// texts returns the texts of the notices of a kind.
func (b *harness) texts(k notice.Kind) (texts []string) {
	for _, n := range b.notices {
		if n.Kind == k {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// restart restarts the agent, up to the point where the version is 0.
func (b *harness) restart() {
	b.t.Helper()
	clear(b.mem[offVersion : offVersion+4])
	b.step()
	if !b.reopen {
		b.t.Fatalf("the restart was not detected; notices are %v", b.notices)
	}
}

// When an agent restarts, NIXL resets its ring and discards unread events. The notice
// mentions this unless a drain found the ring empty after the agent had exited.
func TestRestartThatMayHaveDiscardedEventsIsReported(t *testing.T) {
	for name, exits := range map[string]bool{"without a pause": false, "long after it exited": true} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.start(ringbuf.Consume, false)
			b.push(3)
			b.step()
			if exits {
				b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
				b.step()
			}
			b.restart()
			lossy := !exits
			totals := b.owner.agents[agentPath].tally
			if got := totals.LossyRestarts() == 1; totals.Restarts() != 1 || got != lossy {
				t.Errorf("%d restarts, %d of them lossy", totals.Restarts(), totals.LossyRestarts())
			}
			texts := b.texts(notice.RingRestart)
			if len(texts) != 1 || strings.Contains(texts[0], "may be lost") != lossy {
				t.Errorf("notices are %q", texts)
			}
		})
	}
}

// The events are in the totals already.
func TestForeignReadOfCountedEventsIsReportedWithoutALoss(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, true)
	b.hangs = true // counted events stay in the ring
	b.push(10)
	b.step()
	b.takeTo(10)
	b.step()
	b.push(5)
	b.step()
	if got := b.counted(); got != 15 {
		t.Errorf("%d events are counted, want 15", got)
	}
	texts := b.texts(notice.RingForeign)
	if len(texts) != 1 || !strings.Contains(texts[0], "events that it consumes first are missing") || strings.Contains(texts[0], "too low") {
		t.Errorf("notices are %q", texts)
	}
}

// If an agent flushes more often than the configured run interval, the notice names
// run_interval instead of a larger buffer.
func TestFullRingOfAFastAgentNeedsAShorterRunInterval(t *testing.T) {
	for want, interval := range map[string]time.Duration{
		"set run_interval: ":                 10 * time.Millisecond,
		"set NIXL_TELEMETRY_BUFFER_SIZE=256": 100 * time.Millisecond,
	} {
		t.Run(interval.String(), func(t *testing.T) {
			b := newHarness(t)
			b.start(ringbuf.Consume, false)
			flush := b.now.Add(interval)
			for end := b.now.Add(2 * time.Second); b.now.Before(end); {
				next, _ := b.owner.step(b.now, nil)
				if next.After(flush) {
					b.now, flush = flush, flush.Add(interval)
					b.push(4)
					continue
				}
				b.now = next
			}
			if _, err := b.writer.PushBatch(make([]ringbuf.Event, 64)); err != nil { // fills the ring
				t.Fatal(err)
			}
			b.step()
			texts := b.texts(notice.RingFull)
			if len(texts) != 1 || !strings.Contains(texts[0], want) {
				t.Errorf("notices are %q, want one with %q", texts, want)
			}
		})
	}
}
