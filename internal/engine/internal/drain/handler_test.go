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

func TestHandlerReceivesWhatIsReadInOrder(t *testing.T) {
	var b *harness
	var got []string
	add := func(format string, args ...any) { got[len(got)-1] += fmt.Sprintf("; "+format, args...) }
	step := func(what string, messages ...Message) {
		got = append(got, what)
		b.step(messages...)
	}
	begin := func(what string) {
		b = newHarness(t)
		b.handler = Handler{
			Opened: func(a Agent, l ringbuf.Layout, capacity int) { add("opened %s %v %d", a.Name, l, capacity) },
			Events: func(_ Agent, batch ringbuf.Batch) { add("%d events", batch.Len()) },
			Missed: func(_ Agent, err error) { add("missed: %v", err) },
			Full:   func(Agent) { add("full") },
			Closed: func(_ Agent, err error) { add("closed: %v", err) },
		}
		got = append(got, what)
		b.start(ringbuf.Consume, false)
	}
	exit := func() Message { return Attended{ID: agentPath, Reader: b.reader, Known: true} }

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
	step("another process", Attended{ID: agentPath, Reader: b.reader, Open: true, Known: true})
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
		"a new ring; opened agent v4 64; 3 events",
		"another consumer; missed: ring: another process consumed events of this ring (read position moved from 3 to 5); 1 events",
		"a restart; closed: ring: agent restarted on this ring; opened agent v4 64; 2 events",
		"a restart at position 0, which only the exit of the agent shows; opened agent v4 64; closed: agent exited; opened agent v4 64; 4 events",
		"an exit; closed: agent exited",
		"another process; opened agent v4 64",
		"a full ring; 60 events; 3 events; full",
		"a broken ring; closed: ring: the disk fails; opened agent v4 64; 1 events",
		"another file; closed: another file has replaced the ring; opened agent v4 64",
		"last events, up to the end of the ring, that could be those of a restart; opened agent v4 64; 3 events; closed: agent exited",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
