// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Why a ring isn't read can be told in a metric, within one walk.
func TestRefusalHasAReason(t *testing.T) {
	for want, tc := range map[string]struct {
		prepare func(t *testing.T, x *world, ring *ringbuf.Writer)
		change  func(*Config)
	}{
		"version": {prepare: func(t *testing.T, _ *world, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 99 })
		}},
		"owner": {change: func(c *Config) { c.AllowedUIDs = []uint32{uint32(os.Geteuid()) + 1} }},
		"locked": {prepare: func(t *testing.T, _ *world, ring *ringbuf.Writer) {
			r, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
		}},
		"not_ready": {prepare: func(t *testing.T, _ *world, ring *ringbuf.Writer) {
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 0 })
		}},
		"invalid": {prepare: func(t *testing.T, _ *world, ring *ringbuf.Writer) {
			if err := os.Truncate(ring.Path(), 100); err != nil {
				t.Fatal(err)
			}
		}},
		"permission": {prepare: func(t *testing.T, _ *world, ring *ringbuf.Writer) {
			if os.Geteuid() == 0 {
				t.Skip("root may open any file")
			}
			if err := os.Chmod(ring.Path(), 0o400); err != nil {
				t.Fatal(err)
			}
		}},
		"limit": {change: func(c *Config) { c.Rings = NewRings(0) }},
	} {
		t.Run(want, func(t *testing.T) {
			x := newWorld(t)
			ring := x.ring("agent", ringbuf.V4, 8)
			if tc.prepare != nil {
				tc.prepare(t, x, ring)
			}
			d := x.directory(tc.change)
			x.round(d)
			x.pass(startingPatience)
			x.round(d)
			s := d.State()
			if got := s.Refused[ring.Path()]; got.Reason != want || got.Err == nil || len(s.Refused) != 1 {
				t.Errorf("refused are %+v", s.Refused)
			}
			if told := append(x.told(d, notice.RingRefused), x.told(d, notice.RingLimit)...); len(told) != 1 || told[0].Level < slog.LevelWarn {
				t.Errorf("notices are %v", told)
			}
			remove(t, ring.Path())
			x.round(d)
			if s := d.State(); len(s.Refused) != 0 {
				t.Errorf("after it was removed, refused are %+v", s.Refused)
			}
		})
	}
}

func TestReasonOfPermissionError(t *testing.T) {
	err := fmt.Errorf("open ring: %w", &ringbuf.PermissionError{Owner: 1, UID: 2})
	if got := reason(err); got != "permission" {
		t.Errorf("reason is %s", got)
	}
	if got := reason(errors.New("input/output error")); got != "error" {
		t.Errorf("reason of any error is %s", got)
	}
}

func TestWhatIsNoRingIsReportedOnceAndLeft(t *testing.T) {
	x := newWorld(t)
	touch(t, x.path("text"), strings.Repeat("some text\n", 10))
	touch(t, x.path("short"), "short")
	if err := syscall.Mkfifo(x.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(x.path("text"), x.path("link")); err != nil {
		t.Fatal(err)
	}
	broken := x.ring("broken", ringbuf.V4, 8)
	if err := os.Truncate(broken.Path(), 100); err != nil {
		t.Fatal(err)
	}
	push(t, x.ring("whole", ringbuf.V4, 8), 3)
	d := x.directory(nil)
	for range 5 {
		x.round(d)
		d.wakeDue()
		x.pass(2 * time.Minute)
	}
	if got := x.round(d); got["whole"] != 3 || len(got) != 1 {
		t.Errorf("totals are %v", got)
	}
	if n := len(x.told(d, notice.NotRing)); n != 4 {
		t.Errorf("%d files are reported not to be rings, not 4: %v", n, x.notices)
	}
	if n := len(x.told(d, notice.RingRefused)); n != 1 {
		t.Errorf("%d rings are reported to be refused, not 1: %v", n, x.notices)
	}
	if s := d.State(); len(s.Refused) != 1 {
		t.Errorf("state is %+v", s)
	}
}

func TestFileThatBecomesARingIsOpened(t *testing.T) {
	x := newWorld(t)
	touch(t, x.path("agent"), "")
	d := x.directory(nil)
	x.round(d)
	if s := d.State(); len(s.Refused) != 0 {
		t.Errorf("an agent that is starting is refused: %+v", s)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	x.pass(firstRetryStarting)
	d.wakeDue()
	if got := x.owner.drain()["agent"]; got != 1 {
		t.Errorf("%d events of 1 are counted", got)
	}
}

// Files that were refused together are one line in the log, though each of them
// is tried again by itself.
func TestCrowdOfRefusalsIsOneNotice(t *testing.T) {
	x := newWorld(t)
	for i := range 200 {
		touch(t, x.path(fmt.Sprintf("empty-%03d", i)), "")
	}
	d := x.directory(func(c *Config) {
		c.Now = func() time.Time {
			x.pass(20 * time.Microsecond)
			return x.clock()
		}
	})
	d.walk()
	for begun := x.clock(); x.clock().Sub(begun) < 2*startingPatience; {
		x.pass(d.untilDue())
		d.wakeDue()
		d.walk()
	}
	if told := x.told(d, notice.RingRefused); len(told) != 1 || !strings.HasPrefix(told[0].Text, "200 rings") {
		t.Errorf("notices are %v", told)
	}
}

func TestSecondConsumerWaitsForTheFirst(t *testing.T) {
	x, y := newWorld(t), newWorld(t)
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	first := x.directory(nil)
	first.walk()
	second := y.directory(func(c *Config) { c.Dir = x.dir })
	second.walk()
	if s := second.State(); s.Refused[x.path("agent")].Reason != "locked" {
		t.Errorf("state of the second is %+v", s)
	}
	x.owner.giveUp()
	first.answer()
	y.pass(time.Minute)
	y.round(second)
	if got := y.round(second)["agent"]; got != 1 || len(second.State().Refused) != 0 {
		t.Errorf("once the first is gone, the second counts %d", got)
	}
}

// An agent that comes back as a release that isn't known keeps its name, and is
// opened as soon as it is known again.
func TestKnownAgentIsRefused(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.Version = 99 })
	x.round(d)
	x.round(d)
	if s := d.State(); s.Open != 0 || s.Refused[ring.Path()].Reason != "version" {
		t.Errorf("state is %+v", s)
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 1)
	x.pass(time.Minute)
	x.round(d)
	if got := x.round(d)["agent"]; got != 1 || len(d.State().Refused) != 0 {
		t.Errorf("%d events of 1 are counted, state is %+v", got, d.State())
	}
}

// A folder that can't be read for a while costs no open ring.
func TestFolderThatCantBeReadIsLeft(t *testing.T) {
	x := newWorld(t)
	if err := os.Mkdir(x.path("sub"), 0o750); err != nil {
		t.Fatal(err)
	}
	x.ring("sub/agent", ringbuf.V4, 8)
	denied := false
	d := x.directory(func(c *Config) {
		c.Include = []string{"*/*"}
		c.OpenFolder = func(dir, name string) (*ringbuf.Folder, error) {
			if denied && name != "." {
				return nil, &os.PathError{Op: "open", Path: filepath.Join(dir, name), Err: syscall.EACCES}
			}
			return ringbuf.OpenFolder(dir, name)
		}
	})
	x.round(d)
	denied = true
	d.visit(d.record("sub/agent"))
	d.visit(d.record("sub/other"))
	if s := d.State(); s.Open != 1 || s.Refused[x.path("sub/other")].Reason != "permission" || len(s.Refused) != 1 {
		t.Errorf("state is %+v", s)
	}
	if wait := d.untilDue(); wait < firstRetry {
		t.Errorf("the next look is due in %v", wait)
	}
}
