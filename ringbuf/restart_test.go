// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// start is what an agent starts with.
type start struct {
	name     string
	layout   Layout
	capacity int
	want     []error // what a reader of V2, 64 slots, may say of it
}

var starts = []start{
	{"same", V2, 64, []error{ErrRestarted}},
	{"smaller", V2, 16, []error{ErrRestarted, ErrShrunk}},
	{"larger", V2, 4096, []error{ErrRestarted}},
	{"much smaller events", V4, 2, []error{ErrRestarted, ErrShrunk}},
	{"other version, same size", V4, 64, []error{ErrRestarted}},
	{"same version, other size", V2Named, 64, []error{ErrRestarted}},
	{"larger events", V1, 64, []error{ErrRestarted}},
}

// A restart between two passes of a consumer: nothing of the old ring and
// nothing wrong of the new one comes out, nothing is stored into the new one,
// and a reader that opens the ring again gets just what the agent wrote.
func TestRestart(t *testing.T) {
	for _, s := range starts {
		for _, c := range []struct {
			name        string
			at          int  // read and committed before the restart
			uncommitted int  // then read
			pending     int  // then pushed
			first       bool // whether the agent has written before the reader looks
		}{
			{"drained", 5, 0, 0, false},
			{"drained, written", 5, 0, 0, true},
			{"wrapped", 64 + 40, 0, 0, true},
			{"wrapped to 0, uncommitted", 64, 30, 0, false},
			{"pending", 5, 0, 20, true},
			{"uncommitted", 5, 20, 0, false},
			{"uncommitted, written", 5, 20, 0, true},
			{"never committed", 0, 20, 0, false},
			{"never committed, pending", 0, 20, 20, true},
			{"full", 0, 63, 0, false},
		} {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				w := newRing(t, V2, 64)
				r := open(t, w.Path(), Consume)
				advance(t, w, r, c.at)
				push(t, w, 0, c.uncommitted)
				read(t, r)
				push(t, w, c.uncommitted, c.uncommitted+c.pending)
				anew := create(t, w.Path(), s.layout, s.capacity)
				written := 0
				if c.first {
					written = min(9, s.capacity-1)
					push(t, anew, 100, 100+written)
				}

				got, err := tryRead(r, 0)
				if !isAny(err, s.want) || len(got) != 0 {
					t.Fatalf("read gives %d events, error %v; want %v", len(got), err, s.want)
				}
				says(t, err, w.Path())
				if err := r.Commit(); c.uncommitted > 0 && !isAny(err, s.want) {
					t.Errorf("commit says %v, want %v", err, s.want)
				}
				if h := headerOf(anew); h.ReadPos != 0 {
					t.Errorf("position %d was stored into the new ring", h.ReadPos)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				equal(t, "the new ring's events", read(t, open(t, w.Path(), Consume)), want(samples(s.layout, 100, 100+written)))
			})
		}
	}
}

// A restart after a pass has read, before it commits.
func TestRestartBeforeCommit(t *testing.T) {
	for _, s := range starts {
		for _, at := range []int{0, 5, 64, 100} {
			t.Run(s.name, func(t *testing.T) {
				w := newRing(t, V2, 64)
				r := open(t, w.Path(), Consume)
				advance(t, w, r, at)
				push(t, w, 0, 33)
				equal(t, "events", read(t, r), samples(V2, 0, 33))
				anew := create(t, w.Path(), s.layout, s.capacity)
				if err := r.Commit(); !isAny(err, s.want) {
					t.Errorf("commit at %d says %v, want %v", at, err, s.want)
				}
				if h := headerOf(anew); h.ReadPos != 0 {
					t.Errorf("position %d was stored into the new ring", h.ReadPos)
				}
			})
		}
	}
}

// An observer's position is nowhere in the header; it has to notice all the
// same that what stands ahead of it is old.
func TestRestartUnderAnObserver(t *testing.T) {
	for _, s := range starts {
		for _, first := range []bool{false, true} {
			t.Run(s.name, func(t *testing.T) {
				w := newRing(t, V2, 64)
				push(t, w, 0, 40)
				r := open(t, w.Path(), Observe)
				read(t, r)
				nextTick(t, w.Path())
				anew := create(t, w.Path(), s.layout, s.capacity)
				if first {
					push(t, anew, 0, 1)
				}
				got, err := tryRead(r, 0)
				if !isAny(err, s.want) || len(got) != 0 {
					t.Errorf("read gives %d events, error %v; want %v", len(got), err, s.want)
				}
			})
		}
	}
}

// Where nothing was read yet there is nothing to confuse: the reader goes on
// with the new agent's events, if the ring has the same shape.
func TestRestartOfAnUnusedRing(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Consume)
	push(t, w, 0, 5) // never read
	anew := create(t, w.Path(), V4, 16)
	push(t, anew, 50, 53)
	equal(t, "events", read(t, r), samples(V4, 50, 53))
	commit(t, r)
}

// Positions say nothing of a ring that was never read. That it is another ring
// shows all the same, by the header or by the file.
func TestRestartOfAnUnusedRingInAnotherShape(t *testing.T) {
	for _, s := range starts {
		if s.name == "same" {
			continue
		}
		for _, mode := range modes() {
			w := newRing(t, V2, 64)
			r := open(t, w.Path(), mode)
			push(t, w, 0, 5)
			push(t, create(t, w.Path(), s.layout, s.capacity), 50, 51)
			got, err := tryRead(r, 0)
			if !isAny(err, s.want) || len(got) != 0 {
				t.Errorf("%s, %v: %d events, error %v", s.name, mode, len(got), err)
			}
		}
	}
}

// An agent that restarted, on a ring that was never committed, and has
// written as much as was read before, or more: positions look as if the old
// agent had gone on. The events themselves tell, to a read and to a commit.
func TestRestartThatOnlyEventsTell(t *testing.T) {
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

// Where nothing was committed yet, a fingerprint of the slots would be the new
// run's.
func TestFingerprintOfAnotherRun(t *testing.T) {
	w := newRing(t, V4, 16)
	push(t, w, 0, 4)
	r := open(t, w.Path(), Consume)
	read(t, r)
	if _, err := r.Fingerprint(r.Committed(), r.Position()); err != nil {
		t.Fatal(err)
	}
	push(t, create(t, w.Path(), V4, 16), 100, 105)
	if _, err := r.Fingerprint(r.Committed(), r.Position()); !errors.Is(err, ErrRestarted) {
		t.Errorf("error %v", err)
	}
}

// What can't be told: an agent that restarted, on a ring that was never
// committed, and has begun with the very events that were read before. The
// reader then misses those; it never counts one twice.
func TestRestartThatCannotBeTold(t *testing.T) {
	w := newRing(t, V4, 16)
	push(t, w, 0, 4)
	r := open(t, w.Path(), Consume)
	read(t, r)
	anew := create(t, w.Path(), V4, 16)
	push(t, anew, 0, 6)
	equal(t, "events", read(t, r), samples(V4, 4, 6))
	commit(t, r)
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// want is nil for no events, as read gives it.
func want(events []Event) []Event {
	if len(events) == 0 {
		return nil
	}
	return events
}

func closeNow(tb testing.TB, r *Reader) {
	tb.Helper()
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
}

func truncate(tb testing.TB, path string, size int64) {
	tb.Helper()
	if err := os.Truncate(path, size); err != nil {
		tb.Fatal(err)
	}
}

// nextTick waits until the file system's clock has gone on since the file at
// path was changed: older kernels give the same time for some milliseconds.
func nextTick(tb testing.TB, path string) {
	tb.Helper()
	var file, probe unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		tb.Fatal(err)
	}
	for {
		if err := os.WriteFile(path+".tick", []byte{0}, 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := unix.Stat(path+".tick", &probe); err != nil {
			tb.Fatal(err)
		}
		if probe.Ctim != file.Ctim {
			return
		}
	}
}
