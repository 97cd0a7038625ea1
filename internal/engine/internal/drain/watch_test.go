// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestEachWatchGetsTheErrorsFromItsBeginning(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, false)
	var first, second int
	one := &Watch{Error: func(*Agent, tally.Error) { first++ }}
	two := &Watch{Error: func(*Agent, tally.Error) { second++ }}
	fail := func() {
		must.OK(t, b.writer.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		b.step()
	}
	for i, tt := range []struct {
		message       Message
		first, second int
	}{
		{watching{watch: one}, 1, 0},
		{watching{watch: two}, 2, 1},
	} {
		b.step(tt.message)
		fail()
		if first != tt.first || second != tt.second {
			t.Errorf("step %d: %d and %d reports, want %d and %d", i, first, second, tt.first, tt.second)
		}
	}
	// A watch continues with the totals of the next stream.
	b.owner.succeed(b.agent(), b.now, b.now)
	fail()
	if first != 3 || second != 2 {
		t.Errorf("%d and %d reports after a new stream, want 3 and 2", first, second)
	}
}
