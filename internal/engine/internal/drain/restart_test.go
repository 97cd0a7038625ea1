// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// At the end of the ring, a restart shows in the position. A restart before any event is
// committed doesn't, and changes nothing.
func TestMemoryIsKnownAfterTheReaderRestedAtTheEndOfTheRing(t *testing.T) {
	const capacity, old, next = 64, 1000, 55
	for _, before := range []int{0, capacity, 2 * capacity} {
		for _, saves := range []bool{false, true} {
			for _, crashes := range []bool{false, true} {
				for _, restarts := range []bool{false, true} {
					if crashes && !saves {
						continue
					}
					name := fmt.Sprintf("%d events before, saves %t, crashes %t, restarts %t", before, saves, crashes, restarts)
					t.Run(name, func(t *testing.T) {
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
						want, wantRestarts := int64(before*old+next), 0
						if restarts && before > 0 {
							want, wantRestarts = next, 1
						}
						totals := b.agent().tally
						if got, known := totals.MemoryUsage(); !known || got != want {
							t.Errorf("%d bytes (known: %v), want %d", got, known, want)
						}
						if n := b.count(notice.RingRestart); totals.Restarts() != uint64(wantRestarts) || n != wantRestarts {
							t.Errorf("%d restarts are counted, %d are reported, want %d", totals.Restarts(), n, wantRestarts)
						}
					})
				}
			}
		}
	}
}
