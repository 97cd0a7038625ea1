// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRefusalHasReason(t *testing.T) {
	for want, tc := range map[string]struct {
		prepare func(t *testing.T, x *fixture, ring *ringbuf.Writer)
		change  func(*options)
	}{
		"version": {prepare: func(t *testing.T, _ *fixture, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 99 })
		}},
		"owner": {change: func(c *options) { c.AllowedUIDs = []uint32{uint32(os.Geteuid()) + 1} }},
		"locked": {prepare: func(t *testing.T, _ *fixture, ring *ringbuf.Writer) {
			r, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
			must.OK(t, err)
			t.Cleanup(func() { _ = r.Close() })
		}},
		"not_ready": {prepare: func(t *testing.T, _ *fixture, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 0 })
		}},
		"invalid": {prepare: func(t *testing.T, _ *fixture, ring *ringbuf.Writer) {
			must.OK(t, os.Truncate(ring.Path(), 100))
		}},
		"sparse": {prepare: func(t *testing.T, x *fixture, ring *ringbuf.Writer) {
			x.ring("agent", ringbuf.V4, 4096)
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos = 4000 })
		}},
		"permission": {prepare: func(t *testing.T, _ *fixture, ring *ringbuf.Writer) {
			if os.Geteuid() == 0 {
				t.Skip("root may open any file")
			}
			must.OK(t, os.Chmod(ring.Path(), 0o400))
		}},
	} {
		t.Run(want, func(t *testing.T) {
			x := newFixture(t)
			ring := x.ring("agent", ringbuf.V4, 8)
			if tc.prepare != nil {
				tc.prepare(t, x, ring)
			}
			d := x.directory(tc.change)
			x.round(d)
			x.advance(hangTimeout)
			x.round(d)
			s := d.state()
			if got := s.Refused[ring.Path()]; got.Reason != want || got.Err == nil || len(s.Refused) != 1 {
				t.Errorf("refused = %+v", s.Refused)
			}
			if reported := append(x.noticesOf(notice.RingRefused), x.noticesOf(notice.RingLimit)...); len(reported) != 1 || reported[0].Level < slog.LevelWarn {
				t.Errorf("notices = %v", reported)
			}
			remove(t, ring.Path())
			x.round(d)
			if s := d.state(); len(s.Refused) != 0 {
				t.Errorf("after it was removed, refused = %+v", s.Refused)
			}
		})
	}
}

func TestReasonOfPermissionAndUnknownErrors(t *testing.T) {
	for want, err := range map[string]error{
		"permission": fmt.Errorf("open ring: %w", &files.PermissionError{Owner: 1, UID: 2}), "error": errors.New("input/output error"),
	} {
		if got, _ := refusal(err); got.Reason != want {
			t.Errorf("reason of %v is %s, want %s", err, got.Reason, want)
		}
	}
}

func TestFileThatIsNotARingIsReportedOnceAndIgnored(t *testing.T) {
	x := newFixture(t)
	touch(t, x.path("text"), strings.Repeat("some text\n", 10))
	touch(t, x.path("short"), "short")
	must.OK(t, syscall.Mkfifo(x.path("fifo"), 0o600))
	must.OK(t, os.Symlink(x.path("text"), x.path("link")))
	broken := x.ring("broken", ringbuf.V4, 8)
	must.OK(t, os.Truncate(broken.Path(), 100))
	push(t, x.ring("whole", ringbuf.V4, 8), 3)
	d := x.directory(nil)
	for range 5 {
		x.round(d)
		d.look()
		x.advance(2 * time.Minute)
	}
	if got := x.round(d); got["whole"] != 3 || len(got) != 1 {
		t.Errorf("totals are %v", got)
	}
	if n := len(x.noticesOf(notice.NotRing)); n != 4 {
		t.Errorf("%d NotRing notices, want 4: %v", n, x.notices)
	}
	if n := len(x.noticesOf(notice.RingRefused)); n != 1 {
		t.Errorf("%d RingRefused notices, want 1: %v", n, x.notices)
	}
	if s := d.state(); len(s.Refused) != 1 {
		t.Errorf("state = %+v", s)
	}
}

func TestFileThatBecomesARingIsOpened(t *testing.T) {
	x := newFixture(t)
	touch(t, x.path("agent"), "")
	d := x.directory(nil)
	x.round(d)
	if s := d.state(); len(s.Refused) != 0 {
		t.Errorf("the ring of a starting agent is refused: %+v", s)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	x.advance(lookInterval)
	d.look()
	if got := x.owner.drain()["agent"]; got != 1 {
		t.Errorf("counted %d events, want 1", got)
	}
}

func TestSecondConsumerOpensRingAfterFirstCloses(t *testing.T) {
	x, y := newFixture(t), newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	first := x.directory(nil)
	first.walk()
	second := y.directory(func(o *options) { o.Path = x.dir })
	y.round(second)
	y.round(second)
	y.advance(lookInterval)
	y.round(second)
	if s := second.state(); s.Refused[x.path("agent")].Reason != "locked" {
		t.Errorf("state of the second is %+v", s)
	}
	x.owner.stop()
	first.runCalls()
	push(t, ring, 1)
	y.advance(time.Minute)
	y.round(second)
	if got := y.round(second)["agent"]; got != 1 || len(second.state().Refused) != 0 {
		t.Errorf("after the first consumer closed the ring, the second counted %d events, want 1", got)
	}
}

// Another directory's goroutine locks a ring that it finds under another name before it records this.
func TestRingThatIsLockedForAMomentIsNotRefused(t *testing.T) {
	x := newFixture(t)
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	r, err := ringbuf.OpenReader(x.path("agent"), ringbuf.Consume)
	must.OK(t, err)
	d := x.directory(nil)
	x.round(d)
	if s := d.state(); len(s.Refused) != 0 || len(x.noticesOf(notice.RingRefused)) != 0 {
		t.Errorf("refused = %+v, notices = %v", s.Refused, x.noticesOf(notice.RingRefused))
	}
	must.OK(t, r.Close())
	x.advance(lookInterval)
	d.look()
	if got := x.round(d)["agent"]; got != 1 || len(x.noticesOf(notice.RingRefused)) != 0 {
		t.Errorf("counted %d events, want 1; notices = %v", got, x.noticesOf(notice.RingRefused))
	}
}

// The agent restarts with an unknown version, and then with a known one.
func TestKnownAgentWithUnknownVersionIsRefused(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 99 })
	x.round(d)
	x.round(d)
	if s := d.state(); s.Open != 0 || s.Refused[ring.Path()].Reason != "version" {
		t.Errorf("state = %+v", s)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	x.advance(time.Minute)
	x.round(d)
	if got := x.round(d)["agent"]; got != 1 || len(d.state().Refused) != 0 {
		t.Errorf("counted %d events, want 1, state = %+v", got, d.state())
	}
}

func TestUnreadableDirectoryKeepsOpenRings(t *testing.T) {
	x := newFixture(t)
	must.OK(t, os.Mkdir(x.path("sub"), 0o750))
	x.ring("sub/agent", ringbuf.V4, 8)
	denied := false
	d := x.directory(func(c *options) {
		c.Include = []string{"*/*"}
		c.OpenDir = func(name string) (*files.Dir, error) {
			if denied && name != "." {
				return nil, &os.PathError{Op: "open", Path: x.path(name), Err: syscall.EACCES}
			}
			return files.OpenDir(x.dir, name)
		}
	})
	x.round(d)
	denied = true
	d.checkPath(d.record("sub/agent"))
	d.checkPath(d.record("sub/other"))
	if s := d.state(); s.Open != 1 || s.Refused[x.path("sub/other")].Reason != "permission" || len(s.Refused) != 1 {
		t.Errorf("state = %+v", s)
	}
	if until := d.retryAt.Sub(x.clock()); until != lookInterval {
		t.Errorf("the next try is due in %v", until)
	}
}

// NIXL keeps an empty lock file in each directory of stores, and podman a file of locks in
// /dev/shm. Both have 0 where rings have their version. NIXL's file is known by its name.
func TestFilesOfOtherProgramsAreNotRefusedRings(t *testing.T) {
	podman := append([]byte{0x87, 0xd1, 0, 0, 2, 0, 0, 0}, make([]byte, 4096)...)
	x := newFixture(t)
	touch(t, x.path("nixl-owner.10.0.0.1.lock"), "")
	touch(t, x.path("libpod_lock"), string(podman))
	d := x.directory(nil)
	for range 10 {
		x.round(d)
		x.advance(hangTimeout)
		d.look()
	}
	if s := d.state(); len(s.Refused) != 0 {
		t.Errorf("refused = %+v", s.Refused)
	}
	if list := x.noticesOf(notice.RingRefused); len(list) != 0 {
		t.Errorf("notices = %v", list)
	}
	if list := x.noticesOf(notice.NotRing); len(list) != 1 {
		t.Errorf("notices = %v, want one, for podman's file", list)
	}
	touch(t, x.path("libpod_lock"), "") // an agent of this name starts
	push(t, x.ring("libpod_lock", ringbuf.V4, 16), 1)
	x.round(d)
	if got := x.round(d)["libpod_lock"]; got != 1 {
		t.Errorf("counted %d events, want 1", got)
	}
}

// A file that isn't ready for a long time is tried rarely, and reported once, but not the file of an agent that
// was open and restarts.
func TestRestartedRingIsTriedAgainSoon(t *testing.T) {
	x := newFixture(t)
	x.owner.mute = true
	restart := func() { ringtest.Edit(t, x.path("agent"), func(h *ringtest.Header) { h.Version = 0 }) }
	x.ring("agent", ringbuf.V4, 8)
	restart()
	d := x.directory(nil)
	for range 10 {
		d.look()
		x.advance(maxRetry)
	}
	x.ring("agent", ringbuf.V4, 8)
	d.look()
	m := x.owner.ring(x.path("agent"))
	restart()
	d.Reopen(m.Agent, m.Reader)
	d.runCalls()
	x.advance(time.Minute)
	d.look()
	if n := len(x.noticesOf(notice.RingRefused)); n != 2 {
		t.Errorf("reported %d times, want 2", n)
	}
	x.ring("agent", ringbuf.V4, 8)
	x.advance(2 * lookInterval)
	d.look()
	if again := x.owner.ring(x.path("agent")); again.Reader == m.Reader {
		t.Error("the ring isn't opened again")
	} else {
		d.Close(again.Reader)
	}
}

func TestRefusalEndsWhenTheRingIsGone(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	must.OK(t, os.Truncate(ring.Path(), 100))
	d := x.directory(nil)
	x.round(d)
	x.advance(time.Second)
	x.round(d)
	if n := len(d.state().Refused); n != 1 {
		t.Errorf("%d files are refused, want 1", n)
	}
	remove(t, ring.Path())
	d.Reopen(d.records[ring.Path()].Agent, nil)
	d.runCalls()
	if s := d.state(); len(s.Refused) != 0 {
		t.Errorf("state = %+v", s)
	}
}

func TestNoticeDependsOnTheReason(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		kind         notice.Kind
		level        slog.Level
	}{
		{"agent", "invalid", notice.RingRefused, slog.LevelWarn},
		{"agent", "budget", notice.BudgetReached, slog.LevelWarn},
		{"agent", "limit", notice.RingLimit, slog.LevelError},
		{storetest.Real, "invalid", notice.MPStoreRefused, slog.LevelWarn},
		{storetest.Real, "budget", notice.BudgetReached, slog.LevelWarn},
		{storetest.Real, "limit", notice.RingLimit, slog.LevelError},
	} {
		r := &record{Agent: drain.Agent{Name: tc.name}}
		if n := r.refusalNotice(Refusal{Reason: tc.reason}); n.Kind != tc.kind || n.Level != tc.level {
			t.Errorf("%s, %s: %+v", tc.name, tc.reason, n)
		}
	}
}
