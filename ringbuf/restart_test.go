// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// start is the configuration of a starting agent.
type start struct {
	name     string
	layout   Layout
	capacity int
	want     []error // possible errors of a reader with layout V2 and 64 slots
}

// For an agent that starts with the same layout and capacity, see [TestAgentPausedDuringRestart].
var starts = []start{
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
			{"drained, written", Consume, 5, 0, 0, true},
			{"wrapped", Consume, 64 + 40, 0, 0, true},
			{"wrapped to 0, uncommitted", Consume, 64, 30, 0, false},
			{"pending", Consume, 5, 0, 20, true},
			{"uncommitted, written", Consume, 5, 20, 0, true},
			{"never committed", Consume, 0, 20, 0, false},
			// The header doesn't contain an observer's position.
			{"observed, written", Observe, 0, 40, 0, true},
			// The positions of a ring that was never read can't show a restart, but the
			// header or the file size can.
			{"never read", Consume, 0, 0, 5, true},
			{"never read, observed", Observe, 0, 0, 5, true},
		} {
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
				equal(t, "the new ring's events", read(t, open(t, w.Path(), c.mode)), samples(s.layout, 100, 100+written))
			})
		}
	}
}

// Events 0 to 3 of a ring were read, but not committed, and its agent restarts. If it has written
// more events than that, the positions look as if the old run had continued. Slots that it hasn't
// overwritten yet are still those that were read, and a ring with more slots has them at the same offsets.
func TestRestartBeforeTheFirstCommitShowsInTheEvents(t *testing.T) {
	for _, c := range []struct {
		slots, from, to int  // of the next run
		looks           bool // whether the reader reads before it commits
		read, commit    error
		next            []int // events that it then reads
	}{
		{slots: 16, from: 100, to: 104, looks: true, commit: ErrRestarted},
		{slots: 16, from: 100, to: 105, looks: true, read: ErrRestarted, commit: ErrRestarted},
		{slots: 16, from: 100, to: 115, looks: true, read: ErrRestarted, commit: ErrRestarted},
		{slots: 16, to: 2, commit: ErrRestarted},
		{slots: 16, to: 3, commit: ErrRestarted},
		{slots: 32, to: 6, commit: ErrRestarted},
		{slots: 16, to: 6, looks: true, next: []int{4, 6}}, // undetectable; nothing is counted twice
	} {
		eachLayout(t, func(t *testing.T, l Layout) {
			w := newRing(t, l, 16)
			push(t, w, 0, 4)
			r := open(t, w.Path(), Consume)
			read(t, r)
			push(t, create(t, w.Path(), l, c.slots), c.from, c.to)
			if c.looks {
				got, err := tryRead(r, 0)
				if !errors.Is(err, c.read) {
					t.Errorf("%+v: read: %v", c, err)
				}
				if c.next != nil {
					equal(t, "events", got, samples(l, c.next[0], c.next[1]))
				}
			}
			if err := r.Commit(); !errors.Is(err, c.commit) || err != nil && atomic.LoadUint64(r.read) != 0 {
				t.Errorf("%+v: commit to %d: %v", c, atomic.LoadUint64(r.read), err)
			}
		})
	}
}
