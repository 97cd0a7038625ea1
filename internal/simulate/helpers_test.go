// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// consumer is a simple reader of a ring.
type consumer struct {
	t      *testing.T
	path   string
	r      *ringbuf.Reader
	seen   *oracle.Oracle
	events []ringbuf.Event
}

func newConsumer(t *testing.T, path string) *consumer {
	t.Helper()
	c := &consumer{t: t, path: path, seen: oracle.New()}
	t.Cleanup(c.close)
	return c
}

// drain drains the ring. After a restart, it opens the ring again.
func (c *consumer) drain() {
	c.t.Helper()
	for {
		if c.r == nil {
			r, err := ringbuf.OpenReader(c.path, ringbuf.Consume)
			must.OK(c.t, err)
			c.r = r
			c.seen.Restarted()
		}
		_, err := c.r.Read(0, c.take)
		if err == nil {
			err = c.r.Commit()
		}
		switch {
		case err == nil:
			return
		case errors.Is(err, ringbuf.ErrRestarted):
			c.close()
		default:
			c.t.Fatal(err)
		}
	}
}

// drainAll is drain for a ring whose agent has stopped. If the ring has just wrapped, its last event
// can be read only when the file hasn't changed for a second.
func (c *consumer) drainAll() {
	c.t.Helper()
	must.EventuallyTrue(c.t, "empty ring of a stopped agent", func() bool {
		c.drain()
		c.r.Release() // the slot that it keeps if the ring ends at position 0
		h, err := ringbuf.Peek(c.path)
		return err != nil || h.ReadPos == h.WritePos
	})
}

func (c *consumer) take(b ringbuf.Batch) {
	for i := range b.Len() {
		e := b.Event(i)
		c.events = append(c.events, e)
		c.seen.Add(b.Layout(), e)
	}
}

func (c *consumer) close() {
	if c.r != nil {
		if err := c.r.Close(); err != nil {
			c.t.Error(err)
		}
		c.r = nil
	}
}

// same checks that the consumer has read the events in the agent's journal.
func (c *consumer) same(a *simulate.Agent) {
	c.t.Helper()
	totals := a.Totals()
	if diff := cmp.Diff(totals.Points, c.seen.Points()); diff != "" {
		c.t.Errorf("written (-) and read (+) differ:\n%s", diff)
	}
	if totals.Written != uint64(len(c.events)) {
		c.t.Errorf("the agent has written %d events, but %d were read", totals.Written, len(c.events))
	}
}

// clock is a clock that only advance changes.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// run runs an agent until it is done, and drains its ring after every so many flushes. What was read must be what the
// agent has written.
func run(t *testing.T, every int, cfg simulate.Config) (*consumer, simulate.Totals) {
	t.Helper()
	a := mustNew(t, cfg)
	must.OK(t, a.Start())
	c := newConsumer(t, a.Path())
	for i := 0; !a.Done(); i++ {
		must.OK(t, a.Interval())
		if i%every == 0 {
			c.drain()
		}
	}
	must.OK(t, a.Stop())
	c.drainAll()
	c.same(a)
	return c, a.Totals()
}

// point returns a counter of the agent's journal.
func point(t *simulate.Totals, name string) uint64 {
	n, _ := t.Points[name].(int64)
	return uint64(n)
}

func ringPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "agent")
}

func mustNew(t *testing.T, cfg simulate.Config) *simulate.Agent {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = ringPath(t)
	}
	cfg.Journal = oracle.New()
	a, err := simulate.New(cfg)
	must.OK(t, err)
	t.Cleanup(func() { _ = a.Stop() })
	return a
}
