package watch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world is a directory of rings, a clock, and what a watcher reports.
type world struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	now     time.Time
	notices []Notice
	arrived chan Notice
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, dir: t.TempDir(), now: time.Unix(1_800_000_000, 0), arrived: make(chan Notice, 10000)}
}

func (x *world) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *world) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *world) report(n Notice) {
	x.mu.Lock()
	x.notices = append(x.notices, n)
	x.mu.Unlock()
	select {
	case x.arrived <- n:
	default:
	}
}

// told is how many notices of a kind there were.
func (x *world) told(k Kind) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, notice := range x.notices {
		if notice.Kind == k {
			n++
		}
	}
	return n
}

// await waits for a notice of a kind.
func (x *world) await(k Kind) Notice {
	x.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case n := <-x.arrived:
			if n.Kind == k {
				return n
			}
		case <-deadline:
			x.t.Fatalf("no notice of kind %d; there were %v", k, x.notices)
		}
	}
}

// watcher makes a watcher of the world, which isn't started: tests scan and
// drain by themselves, unless they are about the loops.
func (x *world) watcher(change func(*Config)) *Watcher {
	x.t.Helper()
	cfg := Config{Directories: []string{x.dir}, Report: x.report, Now: x.clock}
	if change != nil {
		change(&cfg)
	}
	w, err := New(cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(w.Close)
	return w
}

// ring makes a ring, as an agent that starts does.
func (x *world) ring(name string, layout ringbuf.Layout, capacity int) *ringbuf.Writer {
	x.t.Helper()
	w, err := ringbuf.Create(filepath.Join(x.dir, name), layout, capacity)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = w.Close() })
	return w
}

// push writes n transmissions of a byte each, as fast as there is room.
func push(t *testing.T, w *ringbuf.Writer, n int) {
	t.Helper()
	for range n {
		if err := w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// transmitted is the bytes of each agent that is reported, by name, which are
// delivered with it.
func transmitted(w *Watcher) map[string]int64 {
	totals := make(map[string]int64)
	w.Agents(func(v View) { totals[v.Name] = v.Tally.Size(0).Total().Int64() })
	w.Delivered()
	return totals
}

// view is the agent of that name, which stands still only as long as nothing drains.
func view(t *testing.T, w *Watcher) View {
	t.Helper()
	var found *View
	w.Agents(func(v View) {
		if v.Name == "agent" {
			found = &v
		}
	})
	if found == nil {
		t.Fatal("the agent is not reported")
	}
	return *found
}

// flush drains a watcher and commits what was read.
func flush(t *testing.T, w *Watcher) {
	t.Helper()
	w.Collect(t.Context(), func(View) {})
}

func touch(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// memory is a store that dies with the test, and fails when it is told to.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
	before func() // called within Apply, before anything is stored
	after  func() // called within Apply, after all is stored
}

func newMemory() *memory { return &memory{values: make(map[string][]byte)} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.err
}

func (m *memory) Apply(_ context.Context, ops []Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		m.before()
	}
	if m.err != nil {
		return m.err
	}
	for _, op := range ops {
		if op.Value == nil {
			delete(m.values, op.Key)
		} else {
			m.values[op.Key] = op.Value
		}
	}
	if m.after != nil {
		m.after()
	}
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// agents are the paths that there are checkpoints of.
func (m *memory) agents() (paths []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.values {
		if path, ok := strings.CutPrefix(key, agentKey("")); ok {
			paths = append(paths, path)
		}
	}
	return paths
}
