// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func often(c *Config) { c.InitialDelay, c.CollectionInterval = 0, 2*time.Millisecond }

func TestShutdownDrainsAndExportsOneLastTime(t *testing.T) {
	h := agentHarness(t).rarely().start()
	h.push(write(1000, 20, 10)...)
	h.push(write(24, 20, 10)...)
	if got := one(t, h.shutdown()).int(transmitted); got != 1024 {
		t.Errorf("%d bytes transmitted, want 1024", got)
	}
	if n, err := h.agent.Len(); err != nil || n != 0 {
		t.Errorf("%d events are left in the ring (%v)", n, err)
	}
	if err := h.receiver.Shutdown(t.Context()); err != nil {
		t.Errorf("second shutdown: %v", err)
	}
	if len(h.batches) > 0 {
		t.Error("the second shutdown exports again")
	}
}

func TestExportIncludesWhatTheConsumerRejectedBefore(t *testing.T) {
	h := agentHarness(t, often)
	down := errors.New("backend is down")
	var calls atomic.Int32
	h.consume = func(context.Context, pmetric.Metrics) error {
		if calls.Add(1) <= 3 {
			h.push(write(10, 1, 1)...)
			return down
		}
		return nil
	}
	h.start()
	a := one(t, h.next())
	h.next()
	h.log("error: Metrics were not exported", "next consumer rejected the metrics", down.Error())
	if n := h.lines.FilterMessageSnippet("Metrics were not exported").Len(); n != 3 {
		t.Errorf("%d errors are logged, want 3", n)
	}
	if got := a.int(transmitted); got != 30 {
		t.Errorf("%d bytes transmitted, want 30", got)
	}
	if got := a.int("nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_bytes}"); got != 3 {
		t.Errorf("%d events, want 3", got)
	}
}

// The Collector reloads its configuration only if the shutdown of the old one succeeds.
func TestShutdownSucceedsIfTheLastExportsFail(t *testing.T) {
	h := agentHarness(t).rarely().withLogs()
	down := errors.New("backend is down")
	h.consume = func(context.Context, pmetric.Metrics) error { return down }
	h.consumeLogs = func(context.Context, plog.Logs) error { return down }
	h.start()
	h.push(slow...)
	must.OK(t, h.stop())
	h.log("error: The last collection was not exported", down.Error())
	h.log("error: the next consumer rejected log records, so they are lost", down.Error())
}

func TestTimeoutCancelsAnExportAndTheNextBegins(t *testing.T) {
	h := agentHarness(t, often, func(c *Config) { c.Timeout = 10 * time.Millisecond })
	h.block(2)
	h.start()
	h.log("next consumer rejected the metrics", context.DeadlineExceeded.Error())
	h.next()
}

func TestFirstExportWaitsForTheInitialDelay(t *testing.T) {
	const delay = 50 * time.Millisecond
	began := time.Now()
	h := agentHarness(t, func(c *Config) { c.InitialDelay = delay }).start()
	h.next()
	if took := time.Since(began); took < delay {
		t.Errorf("the first export was after %v, want at least %v", took, delay)
	}
}

func TestLastCollectionHasADeadline(t *testing.T) {
	for name, c := range map[string]struct{ limit, remaining, want time.Duration }{
		"without the Collector's": {time.Minute, 0, time.Minute},
		"before the Collector's":  {time.Second, time.Hour, time.Second},
		"of a part of it":         {time.Hour, time.Minute, 45 * time.Second},
	} {
		ctx := t.Context()
		if c.remaining > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.remaining)
			defer cancel()
		}
		ctx, cancel := part(ctx, c.limit)
		defer cancel()
		end, ok := ctx.Deadline()
		if left := time.Until(end); !ok || left > c.want || left < c.want-patience {
			t.Errorf("%s: %v are left, want %v", name, left, c.want)
		}
	}
}

// Draining continues, so the ring doesn't fill up, and the last export includes what the blocked
// one didn't deliver.
func TestBlockedExportDelaysNeitherDrainingNorShutdown(t *testing.T) {
	h := agentHarness(t, often)
	blocked := h.block(1)
	h.start()
	wait(t, blocked, "blocked consumer")
	for range 50 {
		h.push(write(10, 1, 1)...)
		h.push(write(10, 1, 1)...)
		h.drained()
	}
	if got := one(t, h.shutdown()).int(transmitted); got != 1000 {
		t.Errorf("%d bytes transmitted, want 1000", got)
	}
}

// block lets the first calls of the next consumer wait until their contexts end.
func (h *harness) block(calls int32) (blocked <-chan struct{}) {
	var left atomic.Int32
	left.Store(calls)
	first := make(chan struct{}, calls)
	h.consume = func(ctx context.Context, _ pmetric.Metrics) error {
		if left.Add(-1) < 0 {
			return nil
		}
		first <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return first
}

// The collection that reports a ring first may have opened it. The processor
// cumulative_to_delta drops a first point at its start time.
func TestFirstPointsEndAfterTheirStart(t *testing.T) {
	h := agentHarness(t).rarely()
	h.push(write(1000, 20, 10)...)
	h.on.now = newClock().now // a clock that stands still
	a := one(t, h.start().shutdown())
	if a.start >= a.time {
		t.Errorf("points are from %v to %v", a.start, a.time)
	}
}

// A stream that begins during a collection begins after the last points of the one before.
func TestPointsHaveTheTimeBeforeTheirCollection(t *testing.T) {
	clock := newClock()
	h := agentHarness(t).rarely()
	h.on.now = clock.now
	h.on.adapt = func(c *engine.Config) {
		c.Handler.Events = func(engine.Agent, ringbuf.Batch) { clock.pass(time.Minute) } // draining takes a while
	}
	h.start()
	clock.pass(time.Second)
	began := clock.now()
	h.push(write(10, 1, 1)...)
	if got := one(t, h.next()).time.AsTime(); !got.Equal(began) {
		t.Errorf("points are from %v after the collection began", got.Sub(began))
	}
}

// Otherwise, a backend could get the older totals last.
func TestLastCollectionWaitsForTheOneInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := agentHarness(t, often)
		exporting, running := make(chan struct{}, 1), atomic.Int32{}
		h.consume = func(context.Context, pmetric.Metrics) error {
			if running.Add(1) > 1 {
				t.Error("two exports run at the same time")
			}
			select {
			case exporting <- struct{}{}:
			default:
			}
			time.Sleep(time.Second) // synctest; it ignores the context
			running.Add(-1)
			return nil
		}
		h.start()
		wait(t, exporting, "export")
		h.shutdown()
	})
}

// A page of the ring never arrives.
func TestRingThatHangsDelaysNeitherCollectionsNorShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, end := make(chan struct{}), make(chan struct{})
		defer close(end)
		h := agentHarness(t)
		h.on.adapt = func(c *engine.Config) {
			c.Handler.Events = func(engine.Agent, ringbuf.Batch) { // blocks the loop that reads the ring
				close(began)
				<-end
			}
		}
		h.start()
		h.push(write(10, 1, 1)...)
		wait(t, began, "read that hangs")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := h.own().collect(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("collect returned %v", err)
		}
		h.log("error: ", "draining has blocked", "check the disk")
		if err := h.receiver.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "stop draining") {
			t.Errorf("shutdown returned %v", err)
		}
	})
}

func TestShutdownDoesntWaitForAConsumerThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		h := agentHarness(t)
		h.consume = func(context.Context, pmetric.Metrics) error {
			<-end
			return nil
		}
		h.start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must.OK(t, h.receiver.Shutdown(ctx))
		h.log("error: The last collection was not exported", context.DeadlineExceeded.Error())
		next, err := ringbuf.OpenReader(h.agent.Path(), ringbuf.Consume)
		if err != nil {
			t.Fatalf("the receiver still has the ring open: %v", err)
		}
		_ = next.Close()
	})
}

// drained waits until nothing is pending in a ring.
func drained(tb testing.TB, path string) {
	tb.Helper()
	must.EventuallyTrue(tb, "empty ring at "+path, func() bool {
		return ringtest.ReadHeader(tb, path).Drained()
	})
}
