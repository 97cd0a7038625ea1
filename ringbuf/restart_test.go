// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// start is the configuration of a starting agent.
type start struct {
	name     string
	layout   Layout
	capacity int
	want     []error // possible errors of a reader with layout V2 and 64 slots
}

var starts = []start{
	{"same", V2, 64, []error{ErrRestarted}},
	{"smaller", V2, 16, []error{ErrRestarted, ErrShrunk}},
	{"larger", V2, 4096, []error{ErrRestarted}},
	{"much smaller events", V4, 2, []error{ErrRestarted, ErrShrunk}},
	{"other version, same size", V4, 64, []error{ErrRestarted}},
	{"larger events", V1, 64, []error{ErrRestarted}},
}

// The agent restarts between two passes of a reader. The reader returns no events and
// stores nothing. After it opens the ring again, it reads exactly the events of the new run.
func TestRestartBetweenPassesIsDetected(t *testing.T) {
	for _, s := range starts {
		for _, c := range []struct {
			name        string
			mode        Mode
			at          int  // read and committed before the restart
			uncommitted int  // then read
			pending     int  // then pushed
			first       bool // whether the agent has written before the reader looks
		}{
			{"drained", Consume, 5, 0, 0, false},
			{"drained, written", Consume, 5, 0, 0, true},
			{"wrapped", Consume, 64 + 40, 0, 0, true},
			{"wrapped to 0, uncommitted", Consume, 64, 30, 0, false},
			{"pending", Consume, 5, 0, 20, true},
			{"uncommitted", Consume, 5, 20, 0, false},
			{"uncommitted, written", Consume, 5, 20, 0, true},
			{"never committed", Consume, 0, 20, 0, false},
			{"never committed, pending", Consume, 0, 20, 20, true},
			{"full", Consume, 0, 63, 0, false},
			// The header doesn't contain an observer's position.
			{"observed", Observe, 0, 40, 0, false},
			{"observed, written", Observe, 0, 40, 0, true},
			// The positions of a ring that was never read can't show a restart, but the
			// header or the file size can.
			{"never read", Consume, 0, 0, 5, true},
			{"never read, observed", Observe, 0, 0, 5, true},
		} {
			if c.at+c.uncommitted == 0 && s.name == "same" {
				continue
			}
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				w := newRing(t, V2, 64)
				r := open(t, w.Path(), c.mode)
				advance(t, w, r, c.at)
				push(t, w, 0, c.uncommitted)
				read(t, r)
				push(t, w, c.uncommitted, c.uncommitted+c.pending)
				restarted := create(t, w.Path(), s.layout, s.capacity)
				written := 0
				if c.first {
					written = min(9, s.capacity-1)
					push(t, restarted, 100, 100+written)
				}

				got, err := tryRead(r, 0)
				if !isAny(err, s.want) || len(got) != 0 {
					t.Fatalf("read gives %d events, error %v; want %v", len(got), err, s.want)
				}
				says(t, err, w.Path())
				if err := r.Commit(); c.mode == Consume && c.uncommitted > 0 && !isAny(err, s.want) {
					t.Errorf("commit: %v, want %v", err, s.want)
				}
				if h := headerOf(restarted); h.ReadPos != 0 {
					t.Errorf("position %d was stored into the new ring", h.ReadPos)
				}
				must.OK(t, r.Close())
				equal(t, "the new ring's events", read(t, open(t, w.Path(), c.mode)), want(samples(s.layout, 100, 100+written)))
			})
		}
	}
}

// An agent restarts on a ring that was never committed, and has written at least as
// many events as were read before. The positions look as if the old run had
// continued, but the events differ.
func TestRestartIsDetectedByChangedEvents(t *testing.T) {
	for _, layout := range Layouts() {
		for _, written := range []int{4, 5, 15} {
			w := newRing(t, layout, 16)
			push(t, w, 0, 4)
			r := open(t, w.Path(), Consume)
			read(t, r)
			push(t, create(t, w.Path(), layout, 16), 100, 100+written)
			if _, err := tryRead(r, 0); (err != nil) != (written > 4) || err != nil && !errors.Is(err, ErrRestarted) {
				t.Errorf("%v, %d events: read: %v", layout, written, err)
			}
			if err := r.Commit(); !errors.Is(err, ErrRestarted) {
				t.Errorf("%v, %d events: commit: %v", layout, written, err)
			}
			if h := headerOf(w); h.ReadPos != 0 {
				t.Errorf("%v, %d events: the new agent's read position is %d", layout, written, h.ReadPos)
			}
		}
	}
}

// A restart is undetectable if nothing was committed and the new run begins with the
// same events that were read before. The reader misses these, but counts none twice.
func TestUndetectableRestartCountsNothingTwice(t *testing.T) {
	w := newRing(t, V4, 16)
	push(t, w, 0, 4)
	r := open(t, w.Path(), Consume)
	read(t, r)
	restarted := create(t, w.Path(), V4, 16)
	push(t, restarted, 0, 6)
	equal(t, "events", read(t, r), samples(V4, 4, 6))
	commit(t, r)
}

// want returns nil instead of an empty slice, like read.
func want(events []Event) []Event {
	if len(events) == 0 {
		return nil
	}
	return events
}

func closeNow(tb testing.TB, r *Reader) {
	tb.Helper()
	must.OK(tb, r.Close())
}

func truncate(tb testing.TB, path string, size int64) {
	tb.Helper()
	must.OK(tb, os.Truncate(path, size))
}

// Slots that the next run hasn't overwritten yet are still those that were read. A ring with more
// slots has them at the same offsets.
func TestCommitFromZeroFailsIfTheNextRunHasEqualEvents(t *testing.T) {
	for _, next := range []struct{ slots, events int }{{8, 3}, {8, 4}, {16, 6}} {
		w := newRing(t, V4, 8)
		push(t, w, 0, 5)
		r := open(t, w.Path(), Consume)
		read(t, r)
		push(t, create(t, w.Path(), V4, next.slots), 0, next.events)
		if err := r.Commit(); !errors.Is(err, ErrRestarted) || atomic.LoadUint64(r.read) != 0 {
			t.Errorf("%+v: read position %d, error %v", next, atomic.LoadUint64(r.read), err)
		}
	}
}
