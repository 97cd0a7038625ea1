// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestHandlerReceivesEventsInOrder(t *testing.T) {
	var b *harness
	var got []string
	step := func(what string, messages ...Message) {
		got = append(got, what)
		b.step(messages...)
	}
	begin := func(what string) {
		b = newHarness(t)
		b.handler = Handler{Events: func(_ Agent, batch ringbuf.Batch) { got[len(got)-1] += fmt.Sprintf("; %d events", batch.Len()) }}
		got = append(got, what)
		b.start(ringbuf.Consume, false)
	}
	exit := func() Message { return Attended{ID: agentPath, Reader: b.reader, Up: UpNo} }

	begin("a new ring")
	b.push(3)
	b.step()
	b.push(3)
	b.takeTo(5)
	step("another consumer")
	b.step()
	b.startAgent(64)
	b.push(2)
	step("a restart")
	b.open(ringbuf.Consume)
	b.step()

	begin("a restart at position 0, which only the exit of the agent shows")
	b.step(exit())
	b.step()
	b.startAgent(64)
	b.push(4)
	b.step()
	step("an exit", exit())
	b.steps(2)
	step("another process", Attended{ID: agentPath, Reader: b.reader, Up: UpYes})
	b.push(63)
	step("a full ring")
	b.err = errors.New("the disk fails")
	b.push(1)
	step("a broken ring")
	b.err = nil
	b.open(ringbuf.Consume)
	step("another file")
	b.open(ringbuf.Consume)

	begin("last events, up to the end of the ring, that could be those of a restart")
	b.push(3)
	b.step()
	b.fresh = true
	b.push(61)
	b.step(Gone{ID: agentPath, Reader: b.reader})
	b.steps(int(2 * unreadWait / time.Second))

	want := []string{
		"a new ring; 3 events",
		"another consumer; 1 events",
		"a restart; 2 events",
		"a restart at position 0, which only the exit of the agent shows; 4 events",
		"an exit",
		"another process",
		"a full ring; 60 events; 3 events",
		"a broken ring; 1 events",
		"another file",
		"last events, up to the end of the ring, that could be those of a restart; 3 events",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
