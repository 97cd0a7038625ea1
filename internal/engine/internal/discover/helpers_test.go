// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
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
	x := &fixture{t: t, dir: t.TempDir(), now: time.Unix(1_700_000_000, 0)}
	x.newOwner(0)
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

// options configure a Directory of a test.
type options struct {
	Config
	Location
}

// directory returns a Directory that isn't started. Most tests call its methods instead.
func (x *fixture) directory(change func(*options)) *Directory {
	x.t.Helper()
	o := options{Config: Config{Now: x.clock, Include: []string{"*"}}}
	o.Path, o.Identify = x.dir, func(a drain.Agent, _ files.ID, _ time.Time) attributed { return attributed{Agent: a} }
	if change != nil {
		change(&o)
	}
	o.Holder = drain.Holder{Place: o.Path, Shared: true}
	if o.OpenDir == nil {
		o.OpenDir = func(name string) (*files.Dir, error) { return files.OpenDir(o.Path, name) }
	}
	reporter := notice.New(x.report, o.Now)
	d := newDirectory(o.Config, o.Location, x.owner.send, reporter)
	x.t.Cleanup(func() {
		x.owner.stop()
		if !d.hasEnded() {
			d.end()
		}
		reporter.Close()
	})
	return d
}

// ring creates a ring as a starting agent does.
func (x *fixture) ring(name string, layout ringbuf.Layout, capacity int) *ringbuf.Writer {
	x.t.Helper()
	w, err := ringbuf.Create(filepath.Join(x.dir, name), layout, capacity)
	must.OK(x.t, err)
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

// owner is the owner of the rings, with the messages that it gets.
type owner struct {
	t    *testing.T
	loop *drain.Loop

	mu       sync.Mutex
	messages []drain.Message
	arrived  chan drain.Message
	mute     bool  // it doesn't get the messages, and keeps every ring
	refuses  error // why it keeps none, while it is mute
}

const staleAfter = time.Hour

// newOwner replaces the fixture's owner with one that keeps a number of rings; any number if zero.
func (x *fixture) newOwner(maxRings int) {
	x.t.Helper()
	if x.owner != nil {
		x.owner.stop()
	}
	shape, err := tally.NewShape(tally.Config{})
	must.OK(x.t, err)
	x.owner = &owner{t: x.t, arrived: make(chan drain.Message, 10000), loop: drain.NewLoop(drain.LoopConfig{
		Config: drain.Config{Shape: shape, RunInterval: 100 * time.Millisecond, MaxRings: maxRings, StaleAfter: staleAfter},
		Report: func(notice.Notice) {}, Now: x.clock,
	})}
	x.t.Cleanup(x.owner.stop)
}

func (o *owner) send(m drain.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append(o.messages, m)
	if opened, ok := m.(drain.Offer); !o.mute {
		o.loop.Send(m)
	} else if ok {
		opened.From.Answer(opened.Agent, opened.Reader, o.refuses)
	}
	select {
	case o.arrived <- m:
	default:
	}
}

// stop returns all rings to their directories.
func (o *owner) stop() {
	o.retry(func() error { return o.loop.Stop(context.Background()) })
}

// retry calls fn until it succeeds: if the clock is advanced, the owner may seem to hang.
func (o *owner) retry(fn func() error) {
	o.t.Helper()
	must.EventuallyTrue(o.t, "answer of the owner", func() bool { return fn() == nil })
}

// drain drains all rings and returns the events of each agent, by name.
func (o *owner) drain() map[string]int {
	o.t.Helper()
	var c drain.Collection
	o.retry(func() (err error) {
		c, err = o.loop.Collect(context.Background(), false)
		return err
	})
	o.loop.Delivered(c)
	counts := make(map[string]int)
	for _, s := range c.Snapshots {
		counts[filepath.Base(s.Name)] = int(s.Totals.Size(tally.Transmit).Total().Int64())
	}
	return counts
}

// ring returns the ring of a path that was opened last.
func (o *owner) ring(path string) (last drain.Offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m, ok := m.(drain.Offer); ok && m.Agent.Path == path && m.Reader != nil {
			last = m
		}
	}
	return last
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
	d.runCalls()
	d.refresh()
	counts := x.owner.drain()
	d.runCalls()
	return counts
}

// retire lets the owner retire the agents that have exited.
func (x *fixture) retire(d *Directory) {
	x.t.Helper()
	x.round(d)
	x.owner.drain()
	x.advance(staleAfter)
	x.owner.drain()
	x.owner.drain() // the first one may be answered before agents are retired
	d.runCalls()
}
