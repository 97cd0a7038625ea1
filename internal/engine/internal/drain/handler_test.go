// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// handle sets a handler before start. It returns the lines of its calls since the last time.
func (b *harness) handle() (lines func() []string) {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	b.handler = Handler{
		Opened: func(a Agent, l ringbuf.Layout, capacity int) { add("opened %s %v %d", a.Name, l, capacity) },
		Events: func(_ Agent, batch ringbuf.Batch) { add("%d events", batch.Len()) },
		Missed: func(_ Agent, err error) { add("missed: %v", err) },
		Full:   func(Agent) { add("full") },
		Closed: func(_ Agent, err error) { add("closed: %v", err) },
	}
	return func() []string {
		defer func() { list = nil }()
		return list
	}
}

func TestHandlerReceivesWhatIsReadInOrder(t *testing.T) {
	b := newHarness(t)
	lines := b.handle()
	b.start(ringbuf.Consume, false)
	b.push(3)
	b.step()
	expect := func(what string, want ...string) {
		t.Helper()
		got := lines()
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], ";")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	expect("new ring", "opened agent v4 64", "3 events")

	b.push(3)
	b.takeTo(5)
	b.steps(2)
	got := lines()
	if len(got) != 2 || !strings.HasPrefix(got[0], "missed: ") || got[1] != "1 events" {
		t.Errorf("another consumer: %q", got)
	}

	b.startAgent(64)
	b.push(2)
	b.step()
	got = lines()
	if len(got) != 1 || !strings.HasPrefix(got[0], "closed: ") || !strings.Contains(got[0], "restarted") {
		t.Errorf("a restart: %q", got)
	}
	b.open(ringbuf.Consume)
	b.step()
	expect("after a restart", "opened agent v4 64", "2 events")

	// At position 0, only the exit of the agent shows the restart.
	b = newHarness(t)
	lines = b.handle()
	b.start(ringbuf.Consume, false)
	b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
	b.step()
	b.startAgent(64)
	b.push(4)
	b.step()
	expect("a restart at position 0", "opened agent v4 64", "closed: agent exited", "opened agent v4 64", "4 events")

	b.step(Attended{ID: agentPath, Reader: b.reader, Known: true})
	b.steps(2)
	expect("an exit", "closed: agent exited")
	b.step(Attended{ID: agentPath, Reader: b.reader, Open: true, Known: true})
	expect("another process", "opened agent v4 64")
	b.push(63)
	b.step()
	expect("a full ring", "60 events", "3 events", "full")

	b.err = errors.New("the disk fails")
	b.push(1)
	b.step()
	expect("a broken ring", "closed: ring: the disk fails")
	b.err = nil
	b.open(ringbuf.Consume)
	b.push(1)
	b.step()
	lines()
	b.open(ringbuf.Consume) // another file
	expect("another file", "closed: another file has replaced the ring", "opened agent v4 64")

	// The last events, up to the end of the ring, could be those of a restart.
	b = newHarness(t)
	lines = b.handle()
	b.start(ringbuf.Consume, false)
	b.push(3)
	b.step()
	b.fresh = true
	b.push(61)
	b.step(Gone{ID: agentPath, Reader: b.reader})
	lines()
	b.steps(int(2 * unreadWait / time.Second))
	expect("unread events of an agent that has exited", "closed: agent exited")
}
