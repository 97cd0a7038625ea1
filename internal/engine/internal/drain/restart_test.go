// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// At the end of the ring, a restart shows in the position. A restart before any event is
// committed doesn't, and changes nothing.
func TestMemoryIsKnownAfterTheReaderRestedAtTheEndOfTheRing(t *testing.T) {
	const capacity, old, next = 64, 1000, 55
	for choices := range 3 * 8 {
		before, saves, crashes, restarts := choices/8*capacity, choices&1 > 0, choices&2 > 0, choices&4 > 0
		if crashes && !saves {
			continue
		}
		t.Run(fmt.Sprintf("%d events before, saves %t, crashes %t, restarts %t", before, saves, crashes, restarts), func(t *testing.T) {
			b := newHarnessOf(t, capacity)
			b.start(ringbuf.Consume, saves)
			for range before {
				b.register(old)
				b.steps(2)
			}
			if at, left := b.reader.Position(), b.reader.Uncommitted(); at != 0 || left != 0 {
				t.Fatalf("the position is %d, and %d events aren't committed", at, left)
			}
			if crashes {
				b.start(ringbuf.Consume, saves)
			}
			if restarts {
				b.startAgent(capacity)
				b.step()
				if b.agent().reader == nil {
					b.open(ringbuf.Consume)
				}
			}
			b.register(next)
			b.step()
			type result struct {
				Bytes              int64
				Known              bool
				Restarts, Reported int
			}
			want := result{int64(before*old + next), true, 0, 0}
			if restarts && before > 0 {
				want = result{next, true, 1, 1}
			}
			totals := b.agent().tally
			bytes, known := totals.MemoryUsage()
			if d := cmp.Diff(want, result{bytes, known, int(totals.Restarts()), b.count(notice.RingRestart)}); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
