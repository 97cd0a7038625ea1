// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is the i-th of a sequence of events, each different from the last and
// with something in every field that the layout has.
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

func samples(l Layout, from, to int) []Event {
	events := make([]Event, 0, to-from)
	for i := from; i < to; i++ {
		events = append(events, sample(l, i))
	}
	return events
}

// newRing makes a ring in a directory of its own.
func newRing(tb testing.TB, l Layout, capacity int) *Writer {
	tb.Helper()
	return create(tb, filepath.Join(tb.TempDir(), "agent"), l, capacity)
}

// create makes a ring at path, or an agent restart on the ring there.
func create(tb testing.TB, path string, l Layout, capacity int) *Writer {
	tb.Helper()
	w, err := Create(path, l, capacity)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// settled is a file whose time seems to be old. On a disk the first store to a page
// changes it, and then a reader would wait at position 0 until it is.
type settled struct{ fileBacking }

func (s settled) Stat() (FileState, error) {
	state, err := s.fileBacking.Stat()
	state.Age = settleTime
	return state, err
}

// open opens a ring whose agent isn't restarting.
func open(tb testing.TB, path string, mode Mode) *Reader {
	tb.Helper()
	r, err := OpenReader(path, mode)
	if err != nil {
		tb.Fatal(err)
	}
	file, ok := r.backing.(fileBacking)
	if !ok {
		tb.Fatal("the ring has no file")
	}
	r.backing = settled{file}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// push pushes events from to to of the sequence; all have to fit.
func push(tb testing.TB, w *Writer, from, to int) {
	tb.Helper()
	n, err := w.PushBatch(samples(w.Layout(), from, to))
	if err != nil || n != to-from {
		tb.Fatalf("pushed %d of %d events: %v", n, to-from, err)
	}
}

// read reads what is pending; nothing may be wrong.
func read(tb testing.TB, r *Reader) []Event {
	tb.Helper()
	events, err := tryRead(r, 0)
	if err != nil {
		tb.Fatal(err)
	}
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
	if err := r.Commit(); err != nil {
		tb.Fatal(err)
	}
}

// advance moves a ring of both sides on by n events, read and committed.
func advance(tb testing.TB, w *Writer, r *Reader, n int) {
	tb.Helper()
	for left := n; left > 0; {
		step := min(left, w.Capacity()-1)
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
		return // cmp takes its time with thousands of events
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// says checks that an error's text has all of parts.
func says(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			tb.Errorf("error %q doesn't say %q", err, part)
		}
	}
}

// headerOf is the header as it stands in memory, past every check.
func headerOf(w *Writer) Header { return layouts[w.layout].header.decode(w.mem) }

func bytesOf(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
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
