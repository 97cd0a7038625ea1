// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestNoticeOfAFullRingNamesSettings(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, false)
	b.push(63)
	b.step()
	const want = "ring was full (63 events), so its agent has most likely lost events; set NIXL_TELEMETRY_BUFFER_SIZE=256 for the agent (now 64) " +
		"or a shorter NIXL_TELEMETRY_RUN_INTERVAL, or a shorter run_interval if it flushes more often than every 100ms"
	if d := cmp.Diff([]string{want}, b.texts(notice.RingFull)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
