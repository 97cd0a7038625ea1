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
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// start starts a directory, and stops it when the test ends.
func start(t *testing.T, x *fixture, d *Directory) {
	t.Helper()
	go d.run()
	t.Cleanup(func() {
		x.owner.stop()
		if err := d.stop(context.Background()); err != nil {
			t.Error(err)
		}
		if n := d.open.Load(); n != 0 {
			t.Errorf("%d rings are still open", n)
		}
	})
}

func realTime(o *options) { o.Now = time.Now }

func TestDirectoryDiscoversNewRingsAndRestarts(t *testing.T) {
	x := newFixture(t)
	d := x.directory(realTime)
	start(t, x, d)
	ring := x.ring("late", ringbuf.V4, 64)
	m := await(x.owner, func(drain.Offer) bool { return true })
	if m.Agent != (drain.Agent{ID: ring.Path(), Name: "late", Dir: x.dir, Path: ring.Path(), Holder: d.at.Holder}) {
		t.Errorf("opened %+v", m.Agent)
	}
	x.ring("late", ringbuf.V4, 32)
	x.owner.drain()
	await(x.owner, func(m drain.Offer) bool { return m.Reader.Capacity() == 32 })
}

// An exit must be detected within 5 seconds.
func TestDirectoryDetectsExitInTime(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(realTime)
	start(t, x, d)
	await(x.owner, func(m drain.Attended) bool { return m.Up == drain.UpYes })
	before := time.Now()
	must.OK(t, ring.Close())
	await(x.owner, func(m drain.Attended) bool { return m.Up == drain.UpNo })
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("detecting the exit took %v", took)
	}
}

// hangingFS is a file system that hangs once hangs is set.
type hangingFS struct {
	dir     string
	hangs   atomic.Bool
	reached chan struct{}
	ended   chan struct{}
}

func newHangingFS(dir string) *hangingFS {
	return &hangingFS{dir: dir, reached: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (h *hangingFS) openDir(name string) (*files.Dir, error) {
	if h.hangs.Load() {
		select {
		case h.reached <- struct{}{}:
		default:
		}
		<-h.ended
	}
	return files.OpenDir(h.dir, name)
}

func TestHungDirectoryDoesNotDelayOthers(t *testing.T) {
	x, h := newFixture(t), newHangingFS(t.TempDir())
	hung := x.directory(func(o *options) { o.Now, o.Path, o.OpenDir = time.Now, h.dir, h.openDir })
	healthy := x.directory(realTime)
	h.hangs.Store(true)
	go hung.run()
	<-h.reached
	start(t, x, healthy)
	ring := x.ring("agent", ringbuf.V4, 16)
	await(x.owner, func(m drain.Offer) bool { return m.Agent.Path == ring.Path() })
	hung.state()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := hung.stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop returns %v", err)
	}
	close(h.ended)
	must.OK(t, hung.stop(context.Background()))
}

// Rings that the owner returns while the directory hangs are closed once the file
// system responds.
func TestHungDirectoryDoesNotBlockOwner(t *testing.T) {
	x := newFixture(t)
	h := newHangingFS(x.dir)
	x.ring("agent", ringbuf.V4, 16)
	d := x.directory(func(o *options) { o.Now, o.OpenDir = time.Now, h.openDir })
	go d.run()
	await(x.owner, func(drain.Offer) bool { return true })
	h.hangs.Store(true)
	<-h.reached
	x.owner.stop()
	if n := d.open.Load(); n != 1 {
		t.Errorf("%d rings are open", n)
	}
	close(h.ended)
	must.OK(t, d.stop(context.Background()))
	if n := d.open.Load(); n != 0 {
		t.Errorf("%d rings are open at the end", n)
	}
}

func TestHangIsReportedOnce(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	for times := 1; times <= 2; times++ {
		d.do(func() {
			d.checkHang()
			if n := len(x.noticesOf(notice.DirectoryHangs)); n != times-1 || len(d.state().Missing) != 0 {
				t.Errorf("%d notices at once, state = %v", n, d.state())
			}
			x.advance(hangTimeout)
			d.checkHang()
			d.checkHang()
			if m := d.state().Missing; len(m) != 1 || m[0].Error() != x.dir+": file system has not responded for 10s" {
				t.Errorf("missing = %v", m)
			}
		})
		if m := d.state().Missing; len(m) != 0 {
			t.Errorf("missing = %v afterwards", m)
		}
		if reported := x.noticesOf(notice.DirectoryHangs); len(reported) != times || reported[0].Path != x.dir {
			t.Errorf("notices = %v, want %d", reported, times)
		}
		x.advance(time.Hour)
	}
}

func TestRingReturnedAfterStopIsClosed(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	d := x.directory(realTime)
	go d.run()
	await(x.owner, func(drain.Offer) bool { return true })
	must.OK(t, d.stop(t.Context()))
	must.OK(t, d.stop(t.Context()))
	x.owner.stop()
	must.EventuallyTrue(t, "closed ring", func() bool { return d.open.Load() == 0 })
	r, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	_ = r.Close()
}

func TestDirectoryThatIsMadeAgainIsFoundAtOnce(t *testing.T) {
	for name, vanish := range map[string]func(t *testing.T, dir string){
		"removed": func(t *testing.T, dir string) { t.Helper(); must.OK(t, os.RemoveAll(dir)) },
		"renamed": func(t *testing.T, dir string) { t.Helper(); must.OK(t, os.Rename(dir, dir+".old")) },
		"parent renamed": func(t *testing.T, dir string) {
			t.Helper()
			must.OK(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+".old"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			x.dir = filepath.Join(t.TempDir(), "parent", "rings")
			began := time.Now()
			slow := func() time.Time { return began.Add(time.Since(began) / 20) } // the next walk is due too late
			d := x.directory(func(o *options) { o.Now = slow })
			start(t, x, d)
			for i := range 3 {
				must.OK(t, os.MkdirAll(x.dir, 0o700))
				ring := x.ring(fmt.Sprintf("agent-%d", i), ringbuf.V4, 16)
				await(x.owner, func(m drain.Offer) bool { return m.Agent.Path == ring.Path() })
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
		d := x.directory(func(o *options) { o.Hold = hold })
		expect := func(what string, walks uint64) {
			t.Helper()
			before := d.walks
			if d.poll(); d.walks-before != walks {
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
		must.OK(t, os.Rename(ring.Path(), x.path("other")))
		expect("renamed ring", 1)
		touch(t, x.path("empty"), "")
		expect("empty file", 1)
		x.advance(pollInterval - 1)
		expect("before the next try", 0)
		x.advance(1)
		expect("next try", 1)
		must.OK(t, os.Remove(x.path("empty")))
		expect("removed file", 1)
		x.advance(ProbeInterval)
		expect("due", 1)
		must.OK(t, os.RemoveAll(x.dir))
		expect("removed directory", 1)
		expect("no change", 0)
		if d.opened != nil {
			t.Error("a removed directory is still open")
		}
	}
}

// Where files that appear change the time of their directory, it is listed again only if an agent may restart.
func TestUnchangedDirectoryIsListedRarely(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(x *fixture, ring *ringbuf.Writer)
		age    time.Duration // of the last change
		listed bool          // by the next walk
	}{
		"all agents run": {func(*fixture, *ringbuf.Writer) {}, ProbeInterval, false},
		"just changed":   {func(*fixture, *ringbuf.Writer) {}, ProbeInterval - 1, true},
		"no agent": {func(x *fixture, ring *ringbuf.Writer) {
			must.OK(x.t, os.Remove(ring.Path()))
			must.OK(x.t, ring.Close())
		}, time.Hour, true},
		"exited agent": {func(x *fixture, ring *ringbuf.Writer) { must.OK(x.t, ring.Close()) }, time.Hour, true},
		"restarted agent": {func(x *fixture, ring *ringbuf.Writer) {
			must.OK(x.t, ring.Close())
			x.ring("sub/agent", ringbuf.V4, 8)
		}, time.Hour, false},
		"refused file": {func(x *fixture, _ *ringbuf.Writer) { touch(x.t, x.path("sub/empty"), "") }, time.Hour, true},
		"subdirectory": {func(x *fixture, _ *ringbuf.Writer) { must.OK(x.t, os.MkdirAll(x.path("sub/sub"), 0o700)) }, time.Hour, true},
	} {
		for _, nested := range []bool{false, true} {
			x := newFixture(t)
			sub := x.path("sub")
			must.OK(t, os.Mkdir(sub, 0o700))
			ring := x.ring("sub/agent", ringbuf.V4, 8)
			d := x.directory(func(o *options) {
				if o.Include = []string{"sub/**"}; !nested {
					o.Path, o.Include = sub, []string{"**"}
				}
			})
			x.round(d)
			tc.change(x, ring)
			x.retire(d)
			changed := x.now.Add(-tc.age)
			must.OK(t, os.Chtimes(sub, changed, changed))
			x.round(d)
			x.owner.takeMessages()
			x.ring("sub/new", ringbuf.V4, 8)
			must.OK(t, os.Chtimes(sub, changed, changed))
			x.round(d)
			if listed := count[drain.Offer](x.owner) == 1; listed != tc.listed {
				t.Errorf("%s, nested: %v: listed: %v", name, nested, listed)
			}
			x.advance(relistInterval)
			x.round(d)
			if n := count[drain.Offer](x.owner); n != 1 {
				t.Errorf("%s, nested: %v: the new ring was opened %d times", name, nested, n)
			}
		}
	}
}

func TestWalksTakeALimitedShareOfTheTime(t *testing.T) {
	x := newFixture(t)
	d := x.directory(func(o *options) {
		o.OpenDir = func(name string) (*files.Dir, error) {
			x.advance(time.Second)
			return files.OpenDir(x.dir, name)
		}
	})
	for i := range 100 {
		touch(t, x.path(fmt.Sprint("file-", i)), "no ring")
		d.poll()
		x.advance(time.Second)
	}
	if d.walks > 100/maxWalking+1 {
		t.Errorf("%d walks of a second each in 100 seconds", d.walks)
	}
}
