package tally_test

import (
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ring brings events to an agent's totals on the road that all events take:
// batches can't be made otherwise.
type ring struct {
	tb testing.TB
	w  *ringbuf.Writer
	r  *ringbuf.Reader
}

func newRing(tb testing.TB, l ringbuf.Layout, capacity int) *ring {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "agent")
	w, err := ringbuf.Create(path, l, capacity)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &ring{tb: tb, w: w, r: r}
}

// feed counts events in batches of the sizes that are given, and the rest in
// as few as fit into the ring.
func (r *ring) feed(a *tally.Agent, events []ringbuf.Event, batches ...int) {
	r.tb.Helper()
	for len(events) > 0 {
		n := min(len(events), r.w.Capacity()-1)
		if len(batches) > 0 {
			n = min(n, batches[0])
			batches = batches[1:]
		}
		r.push(events[:n])
		r.read(a.Add)
		events = events[n:]
	}
}

func (r *ring) push(events []ringbuf.Event) {
	r.tb.Helper()
	if n, err := r.w.PushBatch(events); err != nil || n != len(events) {
		r.tb.Fatalf("pushed %d of %d events: %v", n, len(events), err)
	}
}

func (r *ring) read(fn func(ringbuf.Batch)) {
	r.tb.Helper()
	if _, err := r.r.Read(0, fn); err != nil {
		r.tb.Fatal(err)
	}
	if err := r.r.Commit(); err != nil {
		r.tb.Fatal(err)
	}
}

func shape(tb testing.TB, c tally.Config) *tally.Shape {
	tb.Helper()
	s, err := tally.NewShape(c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
