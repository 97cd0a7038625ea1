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

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// memory is a storage extension that outlives receivers. Each component has its own
// keys.
type memory struct {
	component.StartFunc
	component.ShutdownFunc

	batch, closing func() // called before each of these calls, unless it is nil

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
	return &memoryClient{m, nil, kind.String() + "/" + id.String() + "/" + name + "/"}, nil
}

// fail makes batches fail or succeed.
func (m *memory) fail(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// memoryClient has only the methods that the receiver calls.
type memoryClient struct {
	*memory
	storage.Client
	prefix string
}

func (c *memoryClient) Batch(_ context.Context, ops ...*storage.Operation) error {
	if c.batch != nil {
		c.batch()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return errors.New("disk is full")
	}
	for _, op := range ops {
		if op.Type == storage.Set {
			c.values[c.prefix+op.Key] = op.Value
		} else {
			op.Value = c.values[c.prefix+op.Key]
		}
	}
	return nil
}

func (c *memoryClient) Close(context.Context) error {
	if c.closing != nil {
		c.closing()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

// stored returns a harness whose receiver has a storage extension.
func stored(t *testing.T, dir string, store component.Component, change ...func(*Config)) *harness {
	t.Helper()
	h := newHarness(t, dir, append(change, func(c *Config) { c.StorageID = &memoryID })...)
	h.settings.ID = component.MustNewIDWithName(h.settings.ID.Type().String(), "stored") // the same in each life
	h.extensions = map[component.ID]component.Component{memoryID: store}
	return h
}

// A backend that adds up all series counts each transfer once.
func TestTotalsAndStartTimesContinueOverARestartUnlessTheResourceChanges(t *testing.T) {
	t.Parallel() // it waits for a second in each life
	dir, store := t.TempDir(), newMemory()
	w := ring(t, dir, "ring", ringbuf.V4, 64)
	type stream struct {
		agent, cluster string
		start          pcommon.Timestamp
	}
	backend := make(map[stream]int64)
	for _, cluster := range []string{"east", "west", "west"} {
		h := stored(t, dir, store, func(c *Config) { c.Resource = map[string]string{"k8s.cluster.name": cluster} }).start()
		push(t, w, write(10, 5, 2)...)
		drained(t, w.Path()) // its checkpoint is stored
		for _, rm := range h.shutdown().ResourceMetrics().All() {
			a := readAgent(t, rm)
			s := stream{a.resource["nixl.agent.name"], a.resource["k8s.cluster.name"], a.start}
			if n := a.int(transmitted); n < backend[s] {
				t.Errorf("%v decreases from %d to %d", s, backend[s], n)
			} else {
				backend[s] = n
			}
		}
	}
	got := make(map[string]int64)
	for s, n := range backend {
		got[s.agent+" "+s.cluster] += n
	}
	want := map[string]int64{"ring east": 10, "ring west": 20}
	if d := cmp.Diff(want, got); d != "" || len(backend) != len(want) {
		t.Errorf("streams are %v; bytes (-want +got)\n%s", backend, d)
	}
	if store.open != 0 {
		t.Errorf("%d clients of the storage extension are open", store.open)
	}
}

// The last export waits for a backend that hangs, while agents write more than their rings hold.
func TestRingsAreDrainedUntilTheLastExportHasEnded(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := stored(t, dir, store)
	blocked, release := make(chan struct{}), make(chan struct{})
	h.consume = func(context.Context, pmetric.Metrics) error {
		close(blocked)
		<-release
		return errors.New("backend hangs")
	}
	h.start()
	stopped := make(chan error)
	go func() { stopped <- h.stop() }()
	wait(t, blocked, "last export")
	for range 20 {
		for range 5 { // a quarter of the ring, which is stored at once
			push(t, w, write(10, 5, 2)...)
		}
		drained(t, w.Path())
	}
	push(t, w, write(10, 5, 2)...)
	close(release)
	must.OK(t, wait(t, stopped, "shutdown"))
	if n, err := w.Len(); n > 0 || err != nil {
		t.Errorf("%d events are left in the ring (%v)", n, err)
	}
	h.log("error: The last collection was not exported; totals are stored", "backend hangs")
	if got := one(t, stored(t, dir, store).start().shutdown()).int(transmitted); got != 1010 {
		t.Errorf("%d bytes transmitted, want 1010", got)
	}
}

func TestStartFailsWithoutAStorageExtension(t *testing.T) {
	for want, extensions := range map[string]map[component.ID]component.Component{
		`storage: there is no extension "memory": add it to service::extensions`: {},
		`storage: extension "memory" is not a storage extension`: {memoryID: struct {
			component.StartFunc
			component.ShutdownFunc
		}{}},
		`storage: extension "memory": timeout; check that no other Collector`: {memoryID: locked{newMemory()}},
	} {
		h := stored(t, t.TempDir(), nil)
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

// locked is a storage extension whose file another process has open.
type locked struct{ *memory }

func (locked) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return nil, errors.New("timeout")
}

func TestShutdownExportsAndDoesntWaitForStorageThatHangs(t *testing.T) {
	for name, hang := range map[string]func(m *memory, until <-chan struct{}){
		"batch": func(m *memory, until <-chan struct{}) { m.batch = func() { <-until } },
		"close": func(m *memory, until <-chan struct{}) { m.closing = func() { <-until } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				w := ring(t, dir, "agent", ringbuf.V4, 64)
				store, end := newMemory(), make(chan struct{})
				defer close(end)
				hang(store, end)
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
