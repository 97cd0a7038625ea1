// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// sample returns the i-th of a sequence of events. Each differs from the one before
// and sets every field of the layout.
func sample(l Layout, i int) Event {
	if !l.Named() {
		e := NewEvent(Type(i%20), uint64(i)*3+1)
		if l != V2 {
			return e
		}
		e.Category = Category(i % Categories)
		return e
	}
	e := NewNamedEvent(Category(i%Categories), fmt.Sprintf("event %d", i), uint64(i)*3+1)
	if l == V1 {
		e.TimestampMicros = 1_700_000_000_000_000 + uint64(i)
	}
	return e
}

func samples(l Layout, from, to int) (events []Event) {
	for i := from; i < to; i++ {
		events = append(events, sample(l, i))
	}
	return events
}

// newRing creates a ring in its own directory.
func newRing(tb testing.TB, l Layout, capacity int) *Writer {
	tb.Helper()
	return create(tb, filepath.Join(tb.TempDir(), "agent"), l, capacity)
}

// create creates a ring at path, or restarts an agent on the existing ring.
func create(tb testing.TB, path string, l Layout, capacity int) *Writer {
	tb.Helper()
	w, err := Create(path, l, capacity)
	must.OK(tb, err)
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// settled is a file with a clock that advances, so that a reader doesn't wait at position 0.
type settled struct {
	fileBacking
	now *time.Time
}

func (s settled) Now() time.Time {
	*s.now = s.now.Add(settleTime)
	return *s.now
}

// open opens a ring whose agent isn't restarting.
func open(tb testing.TB, path string, mode Mode) *Reader {
	tb.Helper()
	r, err := OpenReader(path, mode)
	must.OK(tb, err)
	file, ok := r.backing.(fileBacking)
	if !ok {
		tb.Fatal("the ring has no file")
	}
	r.backing = settled{file, new(time.Time)}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// push pushes the events from to to-1 of the sequence. All must fit.
func push(tb testing.TB, w *Writer, from, to int) {
	tb.Helper()
	n, err := w.PushBatch(samples(w.Layout(), from, to))
	if err != nil || n != to-from {
		tb.Fatalf("pushed %d of %d events: %v", n, to-from, err)
	}
}

// read reads the pending events and fails the test on an error.
func read(tb testing.TB, r *Reader) []Event {
	tb.Helper()
	events, err := tryRead(r, 0)
	must.OK(tb, err)
	return events
}

func tryRead(r *Reader, limit int) ([]Event, error) {
	var events []Event
	_, err := r.Read(limit, func(b Batch) {
		for i := range b.Len() {
			events = append(events, b.Event(i))
		}
	})
	return events, err
}

func commit(tb testing.TB, r *Reader) {
	tb.Helper()
	must.OK(tb, r.Commit())
}

// advance pushes, reads and commits n events.
func advance(tb testing.TB, w *Writer, r *Reader, n int) {
	tb.Helper()
	for left := n; left > 0; {
		step := min(left, max(1, w.Capacity()-2)) // a commit to position 0 keeps a slot
		push(tb, w, 0, step)
		if got := len(read(tb, r)); got != step {
			tb.Fatalf("read %d events, want %d", got, step)
		}
		commit(tb, r)
		left -= step
	}
}

func equal(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if reflect.DeepEqual(want, got) {
		return // cmp is slow with thousands of events
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// says checks that an error's text contains all parts.
func says(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			tb.Errorf("error %q doesn't contain %q", err, part)
		}
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// headerOf returns the header in memory, unchecked.
func headerOf(w *Writer) Header { return decodeHeader(w.mem) }

func fileBytes(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	must.OK(tb, err)
	return b
}

func modes() []Mode { return []Mode{Consume, Observe} }

// eachLayout runs a test for every layout.
func eachLayout(t *testing.T, run func(t *testing.T, l Layout)) {
	t.Helper()
	for _, l := range Layouts() {
		t.Run(l.String(), func(t *testing.T) { run(t, l) })
	}
}

// afterCommit returns the read position after all pending events of a ring were committed.
func afterCommit(h Header) uint64 {
	if h.WritePos == 0 && h.ReadPos != 0 && h.Capacity > 2 {
		return h.Mask
	}
	return h.WritePos
}
