// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// start starts a directory, and stops it when the test ends.
func start(t *testing.T, x *fixture, d *Directory) {
	t.Helper()
	d.Start()
	t.Cleanup(func() {
		x.owner.returnRings()
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if n := d.State().Open; n != 0 {
			t.Errorf("%d rings are still open", n)
		}
	})
}

func realTime(c *Config) { c.Now = nil }

func TestDirectoryDiscoversNewRingsAndRestarts(t *testing.T) {
	x := newFixture(t)
	d := x.directory(realTime)
	start(t, x, d)
	ring := x.ring("late", ringbuf.V4, 64)
	m := await(x.owner, func(drain.Opened) bool { return true })
	if m.Agent != (drain.Agent{ID: ring.Path(), Name: "late", Dir: x.dir, Path: ring.Path(), Holder: d.cfg.Holder}) {
		t.Errorf("opened %+v", m.Agent)
	}
	x.ring("late", ringbuf.V4, 32)
	x.owner.drain()
	await(x.owner, func(m drain.Opened) bool { return m.Reader.Capacity() == 32 })
}

// An exit must be detected within 5 seconds.
func TestDirectoryDetectsExitInTime(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(realTime)
	start(t, x, d)
	await(x.owner, func(m drain.Attended) bool { return m.Known && m.Open })
	before := time.Now()
	must.OK(t, ring.Close())
	await(x.owner, func(m drain.Attended) bool { return m.Known && !m.Open })
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("detecting the exit took %v", took)
	}
}

// hangingFS is a file system that hangs after begin.
type hangingFS struct {
	mu      sync.Mutex
	hanging bool
	reached chan struct{}
	ended   chan struct{}
}

func newHangingFS() *hangingFS {
	return &hangingFS{reached: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (h *hangingFS) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hanging = true
}

func (h *hangingFS) OpenDir(dir, name string) (*files.Dir, error) {
	h.mu.Lock()
	hanging := h.hanging
	h.mu.Unlock()
	if hanging {
		select {
		case h.reached <- struct{}{}:
		default:
		}
		<-h.ended
	}
	return files.OpenDir(dir, name)
}

func TestHungDirectoryDoesNotDelayOthers(t *testing.T) {
	x, h := newFixture(t), newHangingFS()
	hung := x.directory(func(c *Config) { c.Now, c.Dir, c.OpenDir = nil, t.TempDir(), h.OpenDir })
	healthy := x.directory(func(c *Config) { c.Now = nil })
	h.begin()
	hung.Start()
	<-h.reached
	start(t, x, healthy)
	ring := x.ring("agent", ringbuf.V4, 16)
	await(x.owner, func(m drain.Opened) bool { return m.Agent.Path == ring.Path() })
	x.ring("agent", ringbuf.V4, 8)
	x.owner.drain()
	await(x.owner, func(m drain.Opened) bool { return m.Reader.Capacity() == 8 })
	hung.State()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := hung.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop returns %v", err)
	}
	close(h.ended)
	if err := hung.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// Rings that the owner returns while the directory hangs are closed once the file
// system responds.
func TestHungDirectoryDoesNotBlockOwner(t *testing.T) {
	x, h := newFixture(t), newHangingFS()
	x.ring("agent", ringbuf.V4, 16)
	d := x.directory(func(c *Config) { c.Now, c.OpenDir = nil, h.OpenDir })
	d.Start()
	await(x.owner, func(drain.Opened) bool { return true })
	h.begin()
	<-h.reached
	x.owner.returnRings()
	if n := d.State().Open; n != 1 {
		t.Errorf("%d rings are open", n)
	}
	close(h.ended)
	if err := d.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if n := d.State().Open; n != 0 {
		t.Errorf("%d rings are open at the end", n)
	}
}

func TestHangIsReported(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	d.worker.Do(func() {
		if err := d.State().Missing; err != nil {
			t.Errorf("state = %v at once", err)
		}
		x.advance(HangTimeout)
		d.reportHang()
		if err := d.State().Missing; err == nil || !strings.Contains(err.Error(), x.dir) {
			t.Errorf("state = %v", err)
		}
	})
	if err := d.State().Missing; err != nil {
		t.Errorf("state = %v afterwards", err)
	}
	if reported := x.noticesOf(notice.DirectoryHangs); len(reported) != 1 || reported[0].Path != x.dir {
		t.Errorf("notices = %v", reported)
	}
}

func TestRingReturnedAfterStopIsClosed(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	d := x.directory(realTime)
	d.Start()
	await(x.owner, func(drain.Opened) bool { return true })
	must.OK(t, d.Stop(t.Context()))
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("the second Stop returns %v", err)
	}
	x.owner.returnRings()
	must.EventuallyTrue(t, "closed ring", func() bool { return d.State().Open == 0 })
	r, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	_ = r.Close()
}

func TestStopBeforeStartSucceeds(t *testing.T) {
	d := newFixture(t).directory(nil)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDirectoryThatIsMadeAgainIsFoundAtOnce(t *testing.T) {
	for name, vanish := range map[string]func(t *testing.T, dir string){
		"removed": func(t *testing.T, dir string) {
			t.Helper()
			must.OK(t, os.RemoveAll(dir))
		},
		"renamed": func(t *testing.T, dir string) { t.Helper(); rename(t, dir, dir+".old") },
		"parent renamed": func(t *testing.T, dir string) {
			t.Helper()
			rename(t, filepath.Dir(dir), filepath.Dir(dir)+".old")
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.dir = filepath.Join(t.TempDir(), "parent", "rings")
			const never = 24 * time.Hour
			d := x.directory(func(c *Config) { c.Now, c.Dir, c.WalkEvery = nil, x.dir, never })
			create := func() {
				t.Helper()
				must.OK(t, os.MkdirAll(x.dir, 0o700))
			}
			start(t, x, d)
			for i := range 3 {
				create()
				ring := x.ring(fmt.Sprintf("agent-%d", i), ringbuf.V4, 16)
				await(x.owner, func(m drain.Opened) bool { return m.Agent.Path == ring.Path() })
				vanish(t, x.dir)
				must.OK(t, os.RemoveAll(filepath.Dir(x.dir)+".old"))
				must.OK(t, os.RemoveAll(x.dir+".old"))
			}
		})
	}
}

// A walk happens when the directory has changed, when a refused path is to be tried again, and
// when it is due.
func TestDirectoryIsWalkedWhenItChanges(t *testing.T) {
	for _, hold := range []bool{false, true} {
		x := newFixture(t)
		d := x.directory(func(c *Config) { c.Hold = hold })
		expect := func(what string, walks uint64) {
			t.Helper()
			before := d.walks
			if d.look(); d.walks-before != walks {
				t.Errorf("hold %v: %s: %d walks, want %d", hold, what, d.walks-before, walks)
			}
		}
		expect("first look", 1)
		expect("no change", 0)
		ring := x.ring("agent", ringbuf.V4, 8)
		expect("new ring", 1)
		expect("no change", 0)
		push(t, ring, 1)
		expect("new event", 0)
		rename(t, ring.Path(), x.path("other"))
		expect("renamed ring", 1)
		touch(t, x.path("empty"), "")
		expect("empty file", 1)
		x.advance(lookInterval)
		expect("next try", 1)
		remove(t, x.path("empty"))
		expect("removed file", 1)
		x.advance(ProbeInterval)
		expect("due", 1)
		must.OK(t, os.RemoveAll(x.dir))
		expect("removed directory", 1)
		expect("no change", 0)
		if d.dir != nil {
			t.Error("a removed directory is still open")
		}
	}
}

func TestWalksTakeALimitedShareOfTheTime(t *testing.T) {
	x := newFixture(t)
	d := x.directory(func(c *Config) {
		c.OpenDir = func(dir, name string) (*files.Dir, error) {
			x.advance(time.Second)
			return files.OpenDir(dir, name)
		}
	})
	for i := range 100 {
		touch(t, x.path(fmt.Sprint("file-", i)), "no ring")
		d.look()
		x.advance(time.Second)
	}
	if d.walks > 100/maxWalking+1 {
		t.Errorf("%d walks of a second each in 100 seconds", d.walks)
	}
}
