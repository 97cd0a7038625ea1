// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// takeTo moves the read position like another consumer.
func (b *harness) takeTo(position uint64) {
	const readPos = 8 // its offset in the header
	binary.LittleEndian.PutUint64(b.mem[readPos:], position)
}

// Another process consumes events during a save, and may pass the position that the save
// commits. The ring stays open.
func TestForeignReadDuringASaveCountsNothingTwice(t *testing.T) {
	const before, during, later = 10, 5, 15
	for taken := uint64(1); taken <= before+during; taken++ {
		for steps := range 3 { // from the foreign read to the end of the save
			t.Run(fmt.Sprintf("%d taken, %d steps", taken, steps), func(t *testing.T) {
				b := newHarness(t)
				b.start(ringbuf.Consume, true)
				b.hangs = true
				b.push(before)
				b.step()
				b.step()
				if b.batch == nil || b.counted() != before {
					t.Fatalf("%d events are counted, save %v", b.counted(), b.batch)
				}
				b.push(during)
				b.takeTo(taken)
				for range steps {
					b.step()
				}
				b.hangs = false
				b.step(saved{batch: b.batch})
				b.push(later)
				for range 3 {
					b.step()
				}
				lost := max(int(taken)-before, 0) // not counted before the other consumer took them
				if got, want := int(b.counted()), before+during+later-lost; got != want {
					t.Errorf("%d events are counted, want %d", got, want)
				}
				if b.count(notice.RingForeign) == 0 || b.count(notice.RingBroken) > 0 || b.reopen {
					t.Errorf("notices are %v", b.notices)
				}
			})
		}
	}
}
