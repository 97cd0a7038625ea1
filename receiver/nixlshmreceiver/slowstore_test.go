// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// obstacle is a storage extension that calls a function before each call, if the
// function isn't nil.
type obstacle struct {
	*memory
	batch, closing func(context.Context)
}

func (o *obstacle) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := o.memory.GetClient(ctx, kind, id, name)
	return &obstructed{client, o}, err
}

type obstructed struct {
	storage.Client
	by *obstacle
}

func (c *obstructed) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if c.by.batch != nil {
		c.by.batch(ctx)
	}
	return c.Client.Batch(ctx, ops...)
}

func (c *obstructed) Close(ctx context.Context) error {
	if c.by.closing != nil {
		c.by.closing(ctx)
	}
	return c.Client.Close(ctx)
}

// hanging returns a function that blocks until the test ends.
func hanging(t *testing.T) func(context.Context) {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(context.Context) { <-end }
}

func stored(t *testing.T, dir string, store component.Component, change ...func(*Config)) *harness {
	t.Helper()
	h := newHarness(t, dir, append(change, func(c *Config) { c.StorageID = &memoryID })...)
	h.extensions = map[component.ID]component.Component{memoryID: store}
	return h
}

// collected returns how many agents are collected, 0 if the collection fails.
func collected(ctx context.Context, h *harness) int {
	c, err := h.rings().Collect(ctx, false)
	if err != nil {
		return 0
	}
	return len(c.Snapshots)
}

func TestCollectionsContinueWhileStorageHangs(t *testing.T) {
	t.Parallel() // it waits for timeouts
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := stored(t, dir, &obstacle{memory: newMemory(), batch: hanging(t)}, func(c *Config) { c.Timeout = time.Second }).start()
	must.EventuallyTrue(t, "agent", func() bool { return collected(t.Context(), h) == 1 })
	for want := int64(10); want <= 30; want += 10 {
		push(t, w, write(10, 5, 2)...)
		began := time.Now()
		if got := one(t, h.next()).int(transmitted); got != want {
			t.Errorf("%d bytes transmitted, want %d", got, want)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the collection took %v, but the timeout is 1s", took)
		}
	}
	h.log("checkpoint", "check the storage extension")
}

func TestShutdownExportsAndDoesntWaitForStorageThatHangs(t *testing.T) {
	t.Parallel() // it waits for timeouts
	for name, hangs := range map[string]func(*obstacle, func(context.Context)){
		"batch": func(o *obstacle, fn func(context.Context)) { o.batch = fn },
		"close": func(o *obstacle, fn func(context.Context)) { o.closing = fn },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := ring(t, dir, "agent", ringbuf.V4, 64)
			store := &obstacle{memory: newMemory()}
			hangs(store, hanging(t))
			h := stored(t, dir, store).start()
			must.EventuallyTrue(t, "agent", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				return collected(ctx, h) == 1
			})
			push(t, w, write(10, 5, 2)...)
			const limit = time.Second
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			err := h.receiver.Shutdown(ctx)
			if took := time.Since(began); took > 5*limit {
				t.Errorf("shutdown took %v, want at most %v", took, limit)
			}
			if err == nil || !strings.Contains(err.Error(), "storage extension") && !strings.Contains(err.Error(), "storage: extension") {
				t.Errorf("shutdown returned %v, want an error that names the storage extension", err)
			}
			if got := one(t, wait(t, h.batches, "last collection")).int(transmitted); got != 10 {
				t.Errorf("%d bytes transmitted, want 10", got)
			}
			next, err := ringbuf.OpenReader(w.Path(), ringbuf.Consume)
			if err != nil {
				t.Fatalf("the receiver still has the ring open: %v", err)
			}
			_ = next.Close()
		})
	}
}

// Draining must not wait for the storage extension, because agents don't wait for
// room in their rings.
func TestSlowStorageLosesNoEvent(t *testing.T) {
	t.Parallel() // it waits for the storage
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	slow := func(ctx context.Context) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	h := stored(t, dir, &obstacle{memory: newMemory(), batch: slow}).start()
	const intervals = 96 // a multiple of 16: ends before position 0, where the receiver waits for more
	longest := time.Duration(0)
	for i := range uint64(intervals) {
		push(t, w, slices.Concat(write(10, i, 1), write(10, i, 2), write(10, i, 3))...)
		began := time.Now()
		must.EventuallyTrue(t, "room in the ring", func() bool { n, err := w.Len(); return err == nil && n <= 32 })
		longest = max(longest, time.Since(began))
	}
	if longest > 2*time.Second {
		t.Errorf("the ring had no room for up to %v", longest)
	}
	if got, want := one(t, h.shutdown()).int(transmitted), int64(intervals*3*10); got != want {
		t.Errorf("%d bytes transmitted, want %d", got, want)
	}
}
