// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// mustShutDown shuts the receiver down and checks that it doesn't wait past its
// context, and that the error names what hangs.
func (h *harness) mustShutDown(limit time.Duration, parts ...string) {
	h.tb.Helper()
	ctx, cancel := context.WithTimeout(h.tb.Context(), limit)
	defer cancel()
	began := time.Now()
	err := h.receiver.Shutdown(ctx)
	if took := time.Since(began); took > limit+5*time.Second { // a busy machine
		h.tb.Errorf("shutdown took %v, want at most %v", took, limit)
	}
	if err == nil || !containsAll(err.Error(), parts) {
		h.tb.Errorf("shutdown returned %v, want an error with %s", err, strings.Join(parts, ", "))
	}
}

func TestDirectoryThatHangsDelaysNeitherStartNorShutdownNorOtherDirectories(t *testing.T) {
	t.Parallel() // it waits for timeouts
	healthy, hanging := t.TempDir(), t.TempDir()
	w := ring(t, healthy, "agent", ringbuf.V4, 64)
	end := make(chan struct{})
	defer close(end)
	h := newHarness(t, healthy, func(c *Config) { c.Directories = append(c.Directories, hanging) })
	h.adapt = func(c *engine.Config) {
		c.OpenDir = func(dir, name string) (*files.Dir, error) {
			if dir == hanging {
				<-end
			}
			return files.OpenDir(dir, name)
		}
	}
	h.start()
	push(t, w, write(10, 1, 1)...)
	if got := one(t, h.next()).int(transmitted); got != 10 {
		t.Errorf("%d bytes transmitted, want 10", got)
	}
	push(t, w, write(10, 1, 1)...)
	h.mustShutDown(time.Second, hanging, "not responding")
	if got := one(t, wait(t, h.batches, "last collection")).int(transmitted); got != 20 {
		t.Errorf("%d bytes transmitted, want 20", got)
	}
}

// A page of the ring never arrives.
func TestRingThatHangsDelaysNeitherCollectionsNorShutdown(t *testing.T) {
	t.Parallel() // it waits for timeouts
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	began, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	h := newHarness(t, dir)
	h.adapt = func(c *engine.Config) {
		c.Handler.Events = func(engine.Agent, ringbuf.Batch) { // blocks the loop that reads the ring
			close(began)
			<-end
		}
	}
	h.start()
	push(t, w, write(10, 1, 1)...)
	wait(t, began, "read that hangs")
	if err := h.own().collect(t.Context(), false); err == nil || !strings.Contains(err.Error(), "draining has blocked") {
		t.Fatalf("collect returned %v", err)
	}
	h.log("error: ", "draining has blocked", "check the disk")
	h.mustShutDown(time.Second, "stop: draining has blocked")
}

func TestShutdownDoesntWaitForAConsumerThatIgnoresItsContext(t *testing.T) {
	t.Parallel() // it waits for timeouts
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	end := make(chan struct{})
	defer close(end)
	h := newHarness(t, dir)
	h.consume = func(context.Context, pmetric.Metrics) error {
		<-end
		return nil
	}
	h.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	must.OK(t, h.receiver.Shutdown(ctx))
	h.log("error: The last collection was not exported", context.DeadlineExceeded.Error())
	next, err := ringbuf.OpenReader(w.Path(), ringbuf.Consume)
	if err != nil {
		t.Fatalf("the receiver still has the ring open: %v", err)
	}
	_ = next.Close()
}
