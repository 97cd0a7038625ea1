// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// memory is a storage extension that outlives receivers. Each component has its own
// keys.
type memory struct {
	component.StartFunc
	component.ShutdownFunc

	mu     sync.Mutex
	values map[string][]byte
	open   int
	broken bool
}

var memoryID = component.MustNewID("memory")

func newMemory() *memory { return &memory{values: make(map[string][]byte)} }

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	return &memoryClient{m, kind.String() + "/" + id.String() + "/" + name + "/"}, nil
}

// fail makes batches fail or succeed.
func (m *memory) fail(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

type memoryClient struct {
	*memory
	prefix string
}

func (c *memoryClient) Get(_ context.Context, key string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[c.prefix+key], nil
}

func (c *memoryClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *memoryClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (c *memoryClient) Batch(_ context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return errors.New("disk is full")
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Set:
			c.values[c.prefix+op.Key] = op.Value
		case storage.Delete:
			delete(c.values, c.prefix+op.Key)
		case storage.Get:
			op.Value = c.values[c.prefix+op.Key]
		}
	}
	return nil
}

func (c *memoryClient) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

func TestTotalsAndStartTimesContinueWhenTheCollectorRestarts(t *testing.T) {
	t.Parallel() // it waits for a second in each life
	dir, store := t.TempDir(), newMemory()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	id := newHarness(t, dir).settings.ID
	var before *agent
	for _, want := range []int64{10, 20, 30} {
		h := newHarness(t, dir, func(c *Config) { c.StorageID = &memoryID })
		h.settings.ID = id
		h.extensions = map[component.ID]component.Component{memoryID: store}
		h.start()
		push(t, w, write(10, 5, 2)...)
		drained(t, w.Path()) // its checkpoint is stored
		a := one(t, h.shutdown())
		if got := a.int(transmitted); got != want {
			t.Errorf("%d bytes transmitted, want %d", got, want)
		}
		if before != nil && a.start != before.start {
			t.Errorf("points start at %v, earlier ones at %v", a.start, before.start)
		}
		before = a
	}
	if store.open != 0 {
		t.Errorf("%d clients of the storage extension are open", store.open)
	}
}

func TestStartFailsWithoutAStorageExtension(t *testing.T) {
	for want, extensions := range map[string]map[component.ID]component.Component{
		`storage: there is no extension "memory": add it to service::extensions`: {},
		`storage: extension "memory" is not a storage extension`:                 {memoryID: nothing{}},
	} {
		h := newHarness(t, t.TempDir(), func(c *Config) { c.StorageID = &memoryID })
		h.extensions = extensions
		r, err := newFactory(h.on).CreateMetrics(t.Context(), h.settings, h.cfg, consumertest.NewNop())
		must.OK(t, err)
		if err := r.Start(t.Context(), h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start returned %v, want %s", err, want)
		}
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// nothing is an extension that stores nothing.
type nothing struct {
	component.StartFunc
	component.ShutdownFunc
}

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

func TestShutdownExportsAndDoesntWaitForStorageThatHangs(t *testing.T) {
	for name, hangs := range map[string]func(*obstacle, func(context.Context)){
		"batch": func(o *obstacle, fn func(context.Context)) { o.batch = fn },
		"close": func(o *obstacle, fn func(context.Context)) { o.closing = fn },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				w := ring(t, dir, "agent", ringbuf.V4, 64)
				store := &obstacle{memory: newMemory()}
				hangs(store, hanging(t))
				h := stored(t, dir, store).start()
				push(t, w, write(10, 5, 2)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				err := h.receiver.Shutdown(ctx)
				if took := time.Since(began); took > time.Second {
					t.Errorf("shutdown took %v, want at most a second", took)
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
		})
	}
}
