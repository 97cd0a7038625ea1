// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"regexp"
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

// The notice names run_interval only if an agent flushes more often than that, and its ring
// is large enough for its bursts.
func TestAdviceForAFullRingFitsTheCase(t *testing.T) {
	for name, tc := range map[string]struct {
		interval time.Duration
		burst    int
		want     string
	}{
		"fast":            {10 * time.Millisecond, 4, `set run_interval: (1|2|5|10)ms$`},
		"odd":             {7364730 * time.Nanosecond, 4, `set run_interval: (1|2|5)ms$`},
		"slow":            {100 * time.Millisecond, 4, `set NIXL_TELEMETRY_BUFFER_SIZE=256 for the agent \(now 64\)`},
		"fast with small": {10 * time.Millisecond, 63, `set NIXL_TELEMETRY_BUFFER_SIZE=256 for the agent \(now 64\)`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.start(ringbuf.Consume, false)
			flush := b.now.Add(tc.interval)
			for end := b.now.Add(2 * time.Second); b.now.Before(end); {
				next := b.owner.step(b.now, nil)
				if next.After(flush) {
					b.now, flush = flush, flush.Add(tc.interval)
					if _, err := b.writer.PushBatch(make([]ringbuf.Event, tc.burst)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				b.now = next
			}
			b.notices, b.calls = nil, nil
			if _, err := b.writer.PushBatch(make([]ringbuf.Event, 64)); err != nil { // fills the ring
				t.Fatal(err)
			}
			b.step()
			texts := b.texts(notice.RingFull)
			if len(texts) != 1 || !regexp.MustCompile(tc.want).MatchString(texts[0]) {
				t.Errorf("notices are %q, want one with %q", texts, tc.want)
			}
		})
	}
}

func TestIntervalsAreRoundedDownToRoundNumbers(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		time.Microsecond: time.Millisecond, 1999 * time.Microsecond: time.Millisecond, 2 * time.Millisecond: 2 * time.Millisecond,
		9 * time.Millisecond: 5 * time.Millisecond, 10 * time.Millisecond: 10 * time.Millisecond, 49 * time.Millisecond: 20 * time.Millisecond,
		99 * time.Millisecond: 50 * time.Millisecond, time.Second: time.Second,
	} {
		if got := roundDown(d); got != want {
			t.Errorf("%v becomes %v, want %v", d, got, want)
		}
	}
}
