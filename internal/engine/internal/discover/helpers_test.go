// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// fixture is a directory of rings with a clock, an owner, and the reported notices.
type fixture struct {
	t     *testing.T
	dir   string
	owner *owner

	mu      sync.Mutex
	now     time.Time
	notices []notice.Notice
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	x := &fixture{t: t, dir: t.TempDir(), now: time.Unix(1_800_000_000, 0)}
	x.owner = newOwner(t)
	return x
}

func (x *fixture) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *fixture) advance(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *fixture) report(n notice.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notices = append(x.notices, n)
}

// noticesOf returns the notices of a kind.
func (x *fixture) noticesOf(k notice.Kind) (list []notice.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.notices {
		if n.Kind == k {
			list = append(list, n)
		}
	}
	return list
}

// directory returns a Directory that isn't started. Most tests call its methods
// instead.
func (x *fixture) directory(change func(*Config)) *Directory {
	x.t.Helper()
	cfg := Config{Dir: x.dir, Now: x.clock}
	if change != nil {
		change(&cfg)
	}
	reporter := notice.New(x.report, cfg.now())
	d, err := New(cfg, x.owner.send, reporter)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		x.owner.returnRings()
		d.end()
		reporter.Close()
	})
	return d
}

func (c *Config) now() func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// ring creates a ring as a starting agent does.
func (x *fixture) ring(name string, layout ringbuf.Layout, capacity int) *ringbuf.Writer {
	x.t.Helper()
	w, err := ringbuf.Create(filepath.Join(x.dir, name), layout, capacity)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = w.Close() })
	return w
}

func (x *fixture) path(name string) string { return filepath.Join(x.dir, name) }

// push writes n events.
func push(t *testing.T, w *ringbuf.Writer, n int) {
	t.Helper()
	for range n {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
	}
}

func touch(t *testing.T, path, content string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(content), 0o600))
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must.OK(t, os.Rename(from, to))
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.OK(t, os.Remove(path))
}

// owner replaces package drain: it counts events and returns rings in the same way.
type owner struct {
	t *testing.T

	mu       sync.Mutex
	open     map[string]drain.Opened
	limit    int    // of open rings; none if zero
	silent   bool   // rings that it keeps aren't answered
	stored   string // ID of an agent with a checkpoint
	counts   map[string]int
	messages []drain.Message
	arrived  chan drain.Message
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	return &owner{t: t, open: make(map[string]drain.Opened), counts: make(map[string]int), arrived: make(chan drain.Message, 10000)}
}

func (o *owner) send(m drain.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append(o.messages, m)
	if m, ok := m.(drain.Opened); ok {
		if err := o.admit(m); err != nil {
			m.From.Answer(m.Agent, m.Reader, err)
			return
		}
		if !o.silent {
			m.From.Answer(m.Agent, m.Reader, nil)
		}
		if old, ok := o.open[m.Agent.Path]; ok {
			o.read(old)
			old.From.Close(old.Reader)
		}
		o.open[m.Agent.Path] = m
		o.counts[m.Agent.Path] += 0
	}
	select {
	case o.arrived <- m:
	default:
	}
}

// admit decides whether to keep a ring, in the same way as package drain.
func (o *owner) admit(m drain.Opened) error {
	_, known := o.counts[m.Agent.Path]
	_, has := o.open[m.Agent.Path]
	for _, other := range o.open {
		if other.File == m.File {
			return drain.ErrOpen
		}
	}
	switch {
	case m.Locked != nil:
		return m.Locked
	case m.Exited && !has && m.Agent.ID != o.stored:
		return drain.ErrUnneeded
	case known:
		return nil
	case o.limit > 0 && len(o.open) >= o.limit:
		return drain.ErrLimit
	}
	return nil
}

// read counts the events in a ring, and asks to reopen it if its agent restarted.
func (o *owner) read(m drain.Opened) {
	_, err := m.Reader.Read(1<<20, func(b ringbuf.Batch) { o.counts[m.Agent.Path] += b.Len() })
	if err == nil {
		err = m.Reader.Commit()
	}
	if errors.Is(err, ringbuf.ErrRestarted) || errors.Is(err, ringbuf.ErrShrunk) {
		delete(o.open, m.Agent.Path)
		m.From.Reopen(m.Agent, m.Reader)
	} else if err != nil {
		o.t.Error(err)
	}
}

// drain drains all rings and returns the events of each agent, by name.
func (o *owner) drain() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.open {
		o.read(m)
	}
	counts := make(map[string]int)
	for path, n := range o.counts {
		counts[filepath.Base(path)] = n
	}
	return counts
}

// retire retires the agent at a path.
func (o *owner) retire(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.open[path]
	delete(o.open, path)
	delete(o.counts, path)
	m.From.Retire(m.Agent, m.Reader)
}

// returnRings returns all rings to their directories.
func (o *owner) returnRings() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, m := range o.open {
		m.From.Close(m.Reader)
		delete(o.open, path)
	}
}

// takeMessages returns the messages since the last call.
func (o *owner) takeMessages() []drain.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages := o.messages
	o.messages = nil
	return messages
}

// count returns the number of messages of a type since the last call of takeMessages.
func count[M drain.Message](o *owner) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if _, ok := m.(M); ok {
			n++
		}
	}
	return n
}

// await waits for a message for which match returns true.
func await[M drain.Message](o *owner, match func(M) bool) M {
	o.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case m := <-o.arrived:
			if m, ok := m.(M); ok && match(m) {
				return m
			}
		case <-deadline:
			o.t.Fatal("no matching message arrived")
		}
	}
}

// round does the periodic work of a Directory and of its owner once.
func (x *fixture) round(d *Directory) map[string]int {
	x.t.Helper()
	d.runSubmitted()
	d.refresh()
	counts := x.owner.drain()
	d.runSubmitted()
	return counts
}
