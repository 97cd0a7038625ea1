// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package checkpoint

import (
	"errors"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// hooked calls before ahead of each access to the ring's memory.
type hooked struct {
	plain
	before func()
}

func (h *hooked) Guard(fn func()) error {
	if h.before != nil {
		h.before()
	}
	return h.plain.Guard(fn)
}

// An agent has restarted while no Collector ran. Before any access of Resume to the ring, it writes
// as many events as the checkpoint counts from position 0.
func TestEventsThatARestartedAgentWritesDuringResumeAreNotSkipped(t *testing.T) {
	for access := range 8 {
		ring := &hooked{plain: plain{memory: make([]byte, ringbuf.V4.FileSize(8))}}
		push := func(w *ringbuf.Writer, value uint64) {
			for range 2 {
				must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, value)))
			}
		}
		w, err := ringbuf.NewWriter(ring.memory, ring, ringbuf.V4, 8)
		must.OK(t, err)
		push(w, 1)
		r, err := ringbuf.NewReader(ring.memory, ring, ringbuf.Consume)
		must.OK(t, err)
		_, err = r.Read(0, func(ringbuf.Batch) {})
		must.OK(t, err)
		mark, err := MarkOf(r, 0)
		must.OK(t, err)

		w, err = ringbuf.NewWriter(ring.memory, ring, ringbuf.V4, 8) // the agent restarts
		must.OK(t, err)
		r, err = ringbuf.NewReader(ring.memory, ring, ringbuf.Consume)
		must.OK(t, err)
		left := access
		ring.before = func() {
			if left--; left == -1 {
				ring.before = nil
				push(w, 2)
			}
		}
		outcome, err := mark.Resume(r)
		if ring.before != nil {
			ring.before = nil
			push(w, 2) // after Resume
		}
		if err == nil && outcome == Finished {
			err = r.Commit()
		}
		if !errors.Is(err, ringbuf.ErrRestarted) && outcome != Restarted {
			t.Errorf("before access %d: %v, %v; the restart was not detected", access, outcome, err)
		}
	}
}

// A Collector committed most of a lap without checkpoints. While the next one resumes the ring, the
// agent writes the slot before the position of the totals. They include the event that was in this
// slot a lap earlier, but not the new one. An event that is written before the first access isn't
// distinguishable from the old one.
func TestEventsThatAreWrittenDuringResumeAreNotSkipped(t *testing.T) {
	for _, c := range []struct {
		name               string
		committed, pending int // after the checkpoint, which has two events from position 3
		want               Outcome
	}{
		{"one event before the checkpoint's end", 7, 0, ReadByOther},
		{"at the checkpoint's beginning", 6, 1, Restarted},
	} {
		for access := 1; access < 8; access++ {
			ring := &hooked{plain: plain{memory: make([]byte, ringbuf.V4.FileSize(8))}}
			w, err := ringbuf.NewWriter(ring.memory, ring, ringbuf.V4, 8)
			must.OK(t, err)
			r, err := ringbuf.NewReader(ring.memory, ring, ringbuf.Consume)
			must.OK(t, err)
			push := func(n int) {
				for range n {
					must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
				}
			}
			read := func(n int) {
				push(n)
				_, err := r.Read(0, func(ringbuf.Batch) {})
				must.OK(t, err)
			}
			read(3)
			must.OK(t, r.Commit())
			read(2)
			mark, err := MarkOf(r, 0)
			must.OK(t, err)
			must.OK(t, r.Commit())
			read(c.committed)
			must.OK(t, r.Commit())
			push(c.pending)

			r, err = ringbuf.NewReader(ring.memory, ring, ringbuf.Consume)
			must.OK(t, err)
			left := access
			ring.before = func() {
				if left--; left == -1 {
					ring.before = nil
					push(1)
				}
			}
			outcome, err := mark.Resume(r)
			must.OK(t, err)
			if ring.before != nil {
				ring.before = nil
				push(1) // after Resume
			}
			pending, err := r.Skip(r.Position())
			must.OK(t, err)
			if want := c.pending + 1; outcome != c.want || pending != want {
				t.Errorf("%s, before access %d: %v with %d events left, want %v with %d", c.name, access, outcome, pending, c.want, want)
			}
		}
	}
}
