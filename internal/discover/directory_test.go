// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// start starts a directory, and stops it when the test ends.
func start(t *testing.T, x *world, d *Directory) {
	t.Helper()
	d.Start()
	t.Cleanup(func() {
		x.owner.giveUp()
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if n := d.State().Open; n != 0 {
			t.Errorf("%d rings stay open", n)
		}
	})
}

func realTime(c *Config) { c.Now = nil }

func TestDirectoryFindsNewRingsAndRestarts(t *testing.T) {
	x := newWorld(t)
	d := x.directory(realTime)
	start(t, x, d)
	ring := x.ring("late", ringbuf.V4, 64)
	m := await(x.owner, func(drain.Opened) bool { return true })
	if m.Agent != (drain.Agent{ID: ring.Path(), Name: "late", Dir: x.dir, Path: ring.Path()}) {
		t.Errorf("opened %+v", m.Agent)
	}
	x.ring("late", ringbuf.V4, 32)
	await(x.owner, func(m drain.Touched) bool { return m.ID == ring.Path() })
	x.owner.drain()
	await(x.owner, func(m drain.Opened) bool { return m.Reader.Capacity() == 32 })
	remove(t, ring.Path())
	await(x.owner, func(m drain.Removed) bool { return m.ID == ring.Path() })
}

// An agent's exit shows within 5 seconds.
func TestDirectoryFindsExitInTime(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(realTime)
	start(t, x, d)
	await(x.owner, func(m drain.Attended) bool { return m.Known && m.Open })
	before := time.Now()
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	await(x.owner, func(m drain.Attended) bool { return m.Known && !m.Open })
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Two agents with one name have one ring, and reset it for each other.
func TestAgentsWithOneNameAreReported(t *testing.T) {
	x := newWorld(t)
	first := startAgent(t, x.path("agent"))
	d := x.directory(nil)
	x.round(d)
	push(t, x.ring("other", ringbuf.V4, 8), 1)
	x.round(d)
	second := startAgent(t, x.path("agent"))
	m := x.owner.open[x.path("agent")]
	x.owner.mu.Lock()
	delete(x.owner.open, m.Agent.Path)
	x.owner.mu.Unlock()
	d.Reopen(m.Agent, m.Reader) // its owner finds a restart
	x.round(d)
	d.checking.Wait()
	told := x.told(d, notice.RingShared)
	if len(told) != 1 || told[0].Path != m.Agent.Path ||
		!strings.Contains(told[0].Text, strconv.Itoa(first)) || !strings.Contains(told[0].Text, strconv.Itoa(second)) {
		t.Errorf("notices are %v, agents are %d and %d", told, first, second)
	}
}

// A ring that one process has, and forks of it, isn't shared.
func TestRestartOfOneAgentIsNotReported(t *testing.T) {
	x := newWorld(t)
	startAgent(t, x.path("agent"))
	d := x.directory(nil)
	x.round(d)
	m := x.owner.open[x.path("agent")]
	delete(x.owner.open, m.Agent.Path)
	d.Reopen(m.Agent, m.Reader)
	x.round(d)
	d.checking.Wait()
	if told := x.told(d, notice.RingShared); len(told) != 0 {
		t.Errorf("notices are %v", told)
	}
}

// hang is a file system that hangs once it is told to.
type hang struct {
	mu      sync.Mutex
	hanging bool
	reached chan struct{}
	ended   chan struct{}
}

func newHang() *hang { return &hang{reached: make(chan struct{}, 1), ended: make(chan struct{})} }

func (h *hang) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hanging = true
}

func (h *hang) OpenFolder(dir, name string) (*ringbuf.Folder, error) {
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
	return ringbuf.OpenFolder(dir, name)
}

// A directory that hangs costs what is new in it, and nothing else.
func TestHungDirectoryDelaysNoOther(t *testing.T) {
	x, h, rings := newWorld(t), newHang(), NewRings(10)
	hung := x.directory(func(c *Config) { c.Now, c.Rings, c.Dir, c.OpenFolder = nil, rings, t.TempDir(), h.OpenFolder })
	healthy := x.directory(func(c *Config) { c.Now, c.Rings = nil, rings })
	h.begin()
	hung.Start()
	<-h.reached
	start(t, x, healthy)
	ring := x.ring("agent", ringbuf.V4, 16)
	await(x.owner, func(m drain.Opened) bool { return m.Agent.Path == ring.Path() })
	x.ring("agent", ringbuf.V4, 8)
	await(x.owner, func(m drain.Touched) bool { return m.ID == ring.Path() })
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

// Rings that are given back while their directory hangs are closed once it
// doesn't.
func TestHungDirectoryBlocksNoOwner(t *testing.T) {
	x, h := newWorld(t), newHang()
	x.ring("agent", ringbuf.V4, 16)
	d := x.directory(func(c *Config) { c.Now, c.OpenFolder = nil, h.OpenFolder })
	d.Start()
	await(x.owner, func(drain.Opened) bool { return true })
	h.begin()
	<-h.reached
	x.owner.giveUp()
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

// A directory that hangs for long is reported.
func TestHangIsReported(t *testing.T) {
	x := newWorld(t)
	d := x.directory(nil)
	d.worker.Do(func() {
		if err := d.State().Missing; err != nil {
			t.Errorf("state is %v at once", err)
		}
		x.pass(HangsAfter)
		d.hangs()
		if err := d.State().Missing; err == nil || !strings.Contains(err.Error(), x.dir) {
			t.Errorf("state is %v", err)
		}
	})
	if err := d.State().Missing; err != nil {
		t.Errorf("state is %v afterwards", err)
	}
	if told := x.told(d, notice.DirectoryHangs); len(told) != 1 || told[0].Path != x.dir {
		t.Errorf("notices are %v", told)
	}
}

// A ring that its owner gives up after the directory has stopped is closed.
func TestRingIsClosedAfterStop(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	d := x.directory(realTime)
	d.Start()
	await(x.owner, func(drain.Opened) bool { return true })
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("the second Stop returns %v", err)
	}
	x.owner.giveUp()
	for deadline := time.Now().Add(30 * time.Second); d.State().Open != 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the ring stays open")
		}
	}
	r, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
}

func TestStopBeforeStart(t *testing.T) {
	d := newWorld(t).directory(nil)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
