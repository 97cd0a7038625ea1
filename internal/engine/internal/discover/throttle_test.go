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

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// createRing creates a ring in an existing file, as a starting agent does.
func createRing(t *testing.T, x *fixture, name string) {
	t.Helper()
	x.ring(name, ringbuf.V4, 16)
}

// counting counts the opened directories.
func counting(opened *int) func(*Config) {
	return func(c *Config) {
		c.OpenDir = func(dir, name string) (*files.Dir, error) {
			*opened++
			return files.OpenDir(dir, name)
		}
	}
}

// After a quiet period, a change is detected immediately again.
func TestBusyFileIsCheckedAtGrowingIntervals(t *testing.T) {
	for name, content := range map[string]string{
		"no ring": strings.Repeat("a line of a log\n", 10),
		"empty":   "",
		"invalid": string(append(make([]byte, 16), append([]byte{4, 0, 0, 0}, make([]byte, 100)...)...)),
	} {
		t.Run(name, func(t *testing.T) {
			x, opened := newFixture(t), 0
			touch(t, x.path("app.log"), content)
			d := x.directory(counting(&opened))
			write := fsnotify.Event{Name: x.path("app.log"), Op: fsnotify.Write}
			if d.event(write); opened != 1 {
				t.Fatalf("%d checks after the first change, want 1", opened)
			}
			const writes = 100_000 // in 100 seconds
			for range writes {
				x.advance(time.Millisecond)
				d.event(write)
				d.wakeDue()
			}
			if opened > 40 {
				t.Errorf("%d checks after %d writes, want 40 at most", opened, writes)
			}
			x.advance(time.Hour)
			remove(t, x.path("app.log"))
			createRing(t, x, "app.log")
			if d.event(write); d.State().Open != 1 {
				t.Error("after a quiet hour, a change wasn't detected immediately")
			}
		})
	}
}

func TestChecksOfRecreatedFileAreLimited(t *testing.T) {
	x, opened := newFixture(t), 0
	d := x.directory(counting(&opened))
	const times = 1000 // in 20 seconds
	for range times {
		x.advance(firstGap)
		d.event(fsnotify.Event{Name: x.path("lock"), Op: fsnotify.Create})
		d.event(fsnotify.Event{Name: x.path("lock"), Op: fsnotify.Remove})
		d.wakeDue()
	}
	if opened > 2*times {
		t.Errorf("%d checks after %d changes", opened, times)
	}
}

func TestNewRingAtBusyPathIsOpenedInTime(t *testing.T) {
	x := newFixture(t)
	touch(t, x.path("agent"), "a log")
	d := x.directory(nil)
	for range 1000 {
		x.advance(10 * time.Millisecond)
		d.change(d.record("agent"), false)
		d.wakeDue()
	}
	rename(t, x.path("agent"), x.path("agent.1"))
	createRing(t, x, "agent")
	d.change(d.record("agent"), true)
	x.advance(firstGap)
	if d.wakeDue(); d.State().Open != 1 {
		t.Error("a new ring wasn't opened in time because the path was busy")
	}
}

// The first change is detected immediately. If the file changes all the time, further
// changes are detected within agentGap.
func TestChangesOfOpenRingAreDetectedInTime(t *testing.T) {
	x := newFixture(t)
	x.ring("agent", ringbuf.V4, 64)
	d := x.directory(nil)
	x.round(d)
	touched := func() int {
		n := count[drain.Touched](x.owner)
		x.owner.takeMessages()
		return n
	}
	touched()
	r := d.record("agent")
	if d.change(r, false); touched() != 1 {
		t.Error("the first change wasn't detected immediately")
	}
	if d.change(r, false); touched() != 0 {
		t.Error("the second change was detected immediately, too")
	}
	if wait := d.untilDue(); wait > firstGap {
		t.Errorf("the second change is detected after %v, want %v at most", wait, firstGap)
	}
	x.advance(firstGap)
	if d.wakeDue(); touched() != 1 {
		t.Error("the second change wasn't detected in time")
	}
	for range 100 {
		x.advance(agentGap)
		d.change(r, false)
		d.wakeDue()
	}
	touched()
	d.change(r, false)
	x.advance(agentGap)
	if d.wakeDue(); touched() != 1 {
		t.Errorf("a change wasn't detected within %v", agentGap)
	}
}

func TestRecordsOfAbsentFilesAreDeleted(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	for i := range 100 {
		d.event(fsnotify.Event{Name: x.path(fmt.Sprint("file-", i)), Op: fsnotify.Create})
	}
	d.event(fsnotify.Event{Name: filepath.Join(x.dir, "..", "elsewhere"), Op: fsnotify.Create})
	if len(d.records) != 100 {
		t.Errorf("there are %d records, want 100", len(d.records))
	}
	x.advance(time.Minute)
	d.wakeDue()
	d.walk()
	if len(d.records) != 0 || len(d.scheduled) != 0 {
		t.Errorf("%d records are left, %d are scheduled", len(d.records), len(d.scheduled))
	}
}

func TestNoCheckIsScheduledAfterChangesStop(t *testing.T) {
	x, opened := newFixture(t), 0
	touch(t, x.path("app.log"), "a log")
	d := x.directory(counting(&opened))
	for range 100 {
		d.event(fsnotify.Event{Name: x.path("app.log"), Op: fsnotify.Write})
	}
	x.advance(time.Minute)
	d.wakeDue()
	opened = 0
	for range 100 {
		x.advance(time.Minute)
		d.wakeDue()
	}
	if opened != 0 || d.untilDue() != maxRetry {
		t.Errorf("%d checks, the next is due in %v", opened, d.untilDue())
	}
}

func TestEventRateIsLimited(t *testing.T) {
	now, taken := time.Unix(1_800_000_000, 0), 0
	var l eventLimiter
	for end := now.Add(time.Second); now.Before(end); taken++ {
		now = now.Add(time.Microsecond + l.add(now))
	}
	if limit := maxRepeats * int(time.Second/firstGap+1); taken > limit {
		t.Errorf("%d events a second, limit is %d", taken, limit)
	}
	for range 1000 {
		now = now.Add(time.Millisecond)
		if pause := l.add(now); pause > 0 {
			t.Fatalf("1,000 events a second are delayed by %v", pause)
		}
	}
}

func TestWalksAfterLostEventsAreLimited(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	d.walk()
	if wait := d.untilWalk(); wait != overflowPause {
		t.Errorf("the next walk is due in %v, want %v", wait, overflowPause)
	}
	x.advance(time.Second)
	if wait := d.untilWalk(); wait != 0 {
		t.Errorf("a second later, the next walk is due in %v, want 0", wait)
	}
}
