// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// storedMark returns the mark of the stored checkpoint, and the number of events that its
// totals include.
func (b *harness) storedMark() (m checkpoint.Mark, events uint64) {
	b.t.Helper()
	pages, errs := checkpoint.NewPages(b.stored, b.now)
	must.OK(b.t, errors.Join(errs...))
	e, err := pages.Take(agentPath, time.Time{})
	must.OK(b.t, err)
	if e == nil {
		return m, 0
	}
	totals, err := b.owner.cfg.Shape.Restore(e.Totals)
	must.OK(b.t, err)
	return e.Mark, totals.Requests(tally.Transmit).Events
}

// Two processes are killed at any step. After neither or one of them, the agent restarts and
// writes as many events as before. They are equal, except for some at the beginning.
// Otherwise, the agent may write more events after the first kill.
func TestRunOfEqualLengthIsCountedAfterAKillAtAnyStep(t *testing.T) {
	const events, steps = 5000, 14
	for name, different := range map[string]int{"last 4000 slots are equal": events - 4000, "all but the first are equal": 1} {
		for restart := range 3 {
			for _, more := range []int{0, 3} {
				if restart > 0 && more > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, restart after kill %d, %d more", name, restart, more), func(t *testing.T) {
					for first := 1; first <= steps; first++ {
						for second := 1; second <= steps; second++ {
							equalRun{events, different, more, restart, [2]int{first, second}}.run(t)
						}
					}
				})
			}
		}
	}
}

// equalRun is a case of the test above.
type equalRun struct {
	events, different, more int
	restart                 int    // number of the kill after which the agent restarts; 0 if it doesn't
	kills                   [2]int // steps
}

func (e equalRun) run(t *testing.T) {
	t.Helper()
	const capacity = 8192
	b := newHarnessOf(t, capacity)
	run := func(left int) {
		b.left, b.inbox = left, nil
		b.start(ringbuf.Consume, true)
		for range 4 {
			b.step()
		}
	}
	write := func(n, different int) {
		b.pushValues(min(n, different), 2)
		b.push(n - min(n, different))
	}
	write(e.events, 0)
	want := uint64(e.events + e.more)
	for i, left := range e.kills {
		run(left)
		mark, before := b.storedMark()
		if b.left > 0 && mark.From == 0 { // not killed
			t.Errorf("%+v: position 0 is still stored after its commit", e)
		}
		switch {
		case e.restart == i+1:
			want += before
			b.startAgent(capacity)
			write(e.events, e.different)
		case e.more > 0 && i == 0:
			write(e.more, 0)
		}
	}
	run(-1)
	if got := b.counted(); got != want {
		t.Errorf("%+v: %d events are counted, want %d", e, got, want)
	}
}
