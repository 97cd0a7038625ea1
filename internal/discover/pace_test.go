// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// becomes makes a file a ring, in place, as an agent that starts on it does.
func becomes(t *testing.T, x *world, name string) {
	t.Helper()
	if err := x.ring(name, ringbuf.V4, 16).Close(); err != nil {
		t.Fatal(err)
	}
}

// counting counts how many folders are opened.
func counting(opened *int) func(*Config) {
	return func(c *Config) {
		c.OpenFolder = func(dir, name string) (*ringbuf.Folder, error) {
			*opened++
			return ringbuf.OpenFolder(dir, name)
		}
	}
}

// A file that is written to all day costs less and less, whatever is wrong with
// it. Once it was left alone for a while, a change is seen at once.
func TestBusyFileIsLookedAtLessAndLess(t *testing.T) {
	for name, content := range map[string]string{
		"no ring": strings.Repeat("a line of a log\n", 10),
		"empty":   "",
		"invalid": string(append(make([]byte, 16), append([]byte{4, 0, 0, 0}, make([]byte, 100)...)...)),
	} {
		t.Run(name, func(t *testing.T) {
			x, opened := newWorld(t), 0
			touch(t, x.path("app.log"), content)
			d := x.directory(counting(&opened))
			write := fsnotify.Event{Name: x.path("app.log"), Op: fsnotify.Write}
			if d.event(write); opened != 1 {
				t.Fatalf("the first change is seen by %d looks", opened)
			}
			const writes = 100_000 // in 100 seconds
			for range writes {
				x.pass(time.Millisecond)
				d.event(write)
				d.wakeDue()
			}
			if opened > 40 {
				t.Errorf("%d looks at a file that was written to %d times", opened, writes)
			}
			x.pass(time.Hour)
			remove(t, x.path("app.log"))
			becomes(t, x, "app.log")
			if d.event(write); d.State().Open != 1 {
				t.Error("after an hour without changes a change isn't seen at once")
			}
		})
	}
}

// A file that comes and goes all the time is one that changes all the time.
func TestFileThatComesAndGoesIsLookedAtLessAndLess(t *testing.T) {
	x, opened := newWorld(t), 0
	d := x.directory(counting(&opened))
	const times = 1000 // in 20 seconds
	for range times {
		x.pass(firstGap)
		d.event(fsnotify.Event{Name: x.path("lock"), Op: fsnotify.Create})
		d.event(fsnotify.Event{Name: x.path("lock"), Op: fsnotify.Remove})
		d.wakeDue()
	}
	if opened > 2*times {
		t.Errorf("%d looks for %d changes", opened, times)
	}
}

// A new file is looked at in time even if its name was a busy file's.
func TestNewFileWithABusyName(t *testing.T) {
	x := newWorld(t)
	touch(t, x.path("agent"), "a log")
	d := x.directory(nil)
	for range 1000 {
		x.pass(10 * time.Millisecond)
		d.change(d.record("agent"), false)
		d.wakeDue()
	}
	rename(t, x.path("agent"), x.path("agent.1"))
	becomes(t, x, "agent")
	d.change(d.record("agent"), true)
	x.pass(firstGap)
	if d.wakeDue(); d.State().Open != 1 {
		t.Error("a new ring waits for what was in its place")
	}
}

// An agent that restarts sets its file's size. That is seen at once, but not each
// time if somebody touches the file all the time.
func TestChangesOfAnOpenRingsFile(t *testing.T) {
	x := newWorld(t)
	x.ring("agent", ringbuf.V4, 64)
	d := x.directory(nil)
	x.round(d)
	touched := func() int {
		n := count[drain.Touched](x.owner)
		x.owner.got()
		return n
	}
	touched()
	r := d.record("agent")
	if d.change(r, false); touched() != 1 {
		t.Error("the first change isn't seen at once")
	}
	if d.change(r, false); touched() != 0 {
		t.Error("the second change is seen at once, too")
	}
	if wait := d.untilDue(); wait > firstGap {
		t.Errorf("the second change is seen after %v", wait)
	}
	x.pass(firstGap)
	if d.wakeDue(); touched() != 1 {
		t.Error("the second change isn't seen in time")
	}
	for range 100 {
		x.pass(agentGap)
		d.change(r, false)
		d.wakeDue()
	}
	touched()
	d.change(r, false)
	x.pass(agentGap)
	if d.wakeDue(); touched() != 1 {
		t.Errorf("a change isn't seen within %v", agentGap)
	}
}

func TestCalmFilesAreForgotten(t *testing.T) {
	x := newWorld(t)
	d := x.directory(nil)
	for i := range 100 {
		d.event(fsnotify.Event{Name: x.path(fmt.Sprint("file-", i)), Op: fsnotify.Create})
	}
	d.event(fsnotify.Event{Name: filepath.Join(x.dir, "..", "elsewhere"), Op: fsnotify.Create})
	if len(d.records) != 100 {
		t.Errorf("there are %d records", len(d.records))
	}
	x.pass(time.Minute)
	d.wakeDue()
	d.walk()
	if len(d.records) != 0 || len(d.soon) != 0 {
		t.Errorf("%d records are kept for ever, %d are due", len(d.records), len(d.soon))
	}
}

// A file that is written to all the time and then left alone isn't looked at for
// ever.
func TestNothingIsDueOnceNothingHappens(t *testing.T) {
	x, opened := newWorld(t), 0
	touch(t, x.path("app.log"), "a log")
	d := x.directory(counting(&opened))
	for range 100 {
		d.event(fsnotify.Event{Name: x.path("app.log"), Op: fsnotify.Write})
	}
	x.pass(time.Minute)
	d.wakeDue()
	opened = 0
	for range 100 {
		x.pass(time.Minute)
		d.wakeDue()
	}
	if opened != 0 || d.untilDue() != maxRetry {
		t.Errorf("%d looks, the next is due in %v", opened, d.untilDue())
	}
}

// A flood of events is taken in portions.
func TestFloodIsTakenInPortions(t *testing.T) {
	now, taken := time.Unix(1_800_000_000, 0), 0
	var f flood
	for end := now.Add(time.Second); now.Before(end); taken++ {
		now = now.Add(time.Microsecond + f.more(now))
	}
	if limit := maxRepeats * int(time.Second/firstGap+1); taken > limit {
		t.Errorf("%d events a second, limit is %d", taken, limit)
	}
	for range 1000 {
		now = now.Add(time.Millisecond)
		if pause := f.more(now); pause > 0 {
			t.Fatalf("a trickle is held up for %v", pause)
		}
	}
}

// Events that are lost again and again don't keep the directory walking.
func TestLostEventsBringOneWalk(t *testing.T) {
	x := newWorld(t)
	d := x.directory(nil)
	d.walk()
	if wait := d.untilWalk(); wait != overflowPause {
		t.Errorf("the next walk is after %v", wait)
	}
	x.pass(time.Second)
	if wait := d.untilWalk(); wait != 0 {
		t.Errorf("after a while it is after %v", wait)
	}
}
