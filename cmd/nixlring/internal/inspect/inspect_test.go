// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/inspect"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs/procstest"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func inspected(t *testing.T, path string, change func(*inspect.Config)) *inspect.Report {
	t.Helper()
	cfg := inspect.Config{
		Path: path, Proc: t.TempDir(), RunInterval: 100 * time.Millisecond, EUID: os.Geteuid(), Now: time.Now,
	}
	if change != nil {
		change(&cfg)
	}
	r, err := inspect.Inspect(t.Context(), cfg)
	must.OK(t, err)
	return r
}

// ring creates a ring of 8 slots with some events. Its agent has it open.
func ring(t *testing.T, events int) (path string, w *ringbuf.Writer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent")
	w, err := ringbuf.Create(path, ringbuf.V4, 8)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	for range events {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
	}
	return path, w
}

// proc creates a mock of /proc in a container, in which processes have a file mapped, read-only
// if their PID is negative. lock is the PID of the process that holds the file's lock, or 0.
func proc(t *testing.T, path string, lock int, pids ...int) func(*inspect.Config) {
	t.Helper()
	var list []procstest.Process
	for _, pid := range pids {
		list = append(list, procstest.Process{PID: max(pid, -pid), Lock: pid == lock, ReadOnly: pid < 0})
	}
	root := procstest.Make(t, path, procstest.Inner, list...)
	return func(c *inspect.Config) { c.Proc = root }
}

func TestRealRingsAreInspectedWithoutChanges(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		path := ringtest.Copy(t, c)
		before := ringtest.ReadHeader(t, path)
		r := inspected(t, path, nil)
		if r.Ring != c.Readable() || (r.Error == "") != c.Readable() || r.Header == nil {
			t.Errorf("%s: %+v", c.Name, r)
			continue
		}
		holds := true
		for _, check := range r.Checks {
			holds = holds && check.OK
		}
		if holds != c.Readable() || r.Header.WritePos != c.WritePos || r.Header.Capacity != c.Capacity {
			t.Errorf("%s: %+v, %+v", c.Name, r.Checks, r.Header)
		}
		if c.Readable() && (r.Content.Pending != len(c.Pending) || (r.Content.Newest != nil) != (c.Version == 1 && len(c.Pending) > 0)) {
			t.Errorf("%s: %+v", c.Name, r.Content)
		}
		if diff := cmp.Diff(before, ringtest.ReadHeader(t, path)); diff != "" {
			t.Errorf("%s was changed: %s", c.Name, diff)
		}
	}
}

// This test uses the real /proc.
func TestThisProcessIsFoundInProc(t *testing.T) {
	path, w := ring(t, 3)
	system := func(c *inspect.Config) { c.Proc = "/proc" }
	r := inspected(t, path, system)
	if len(r.Mapped) != 1 || r.Mapped[0].PID != os.Getpid() || !r.Mapped[0].Writable || r.Mapped[0].Command == "" || r.Consumer != nil {
		t.Errorf("mapped %+v, consumer %+v", r.Mapped, r.Consumer)
	}
	if r.Unattended == nil || *r.Unattended {
		t.Errorf("unattended %v", r.Unattended)
	}
	must.OK(t, w.Close())
	consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	if r = inspected(t, path, system); r.Consumer == nil || r.Consumer.PID != os.Getpid() {
		t.Errorf("consumer %+v", r.Consumer)
	}
	must.OK(t, consumer.Close())
	if r = inspected(t, path, system); len(r.Mapped) != 0 || r.Unattended == nil || !*r.Unattended {
		t.Errorf("without users: mapped %+v, unattended %v", r.Mapped, r.Unattended)
	}
}

func TestMappingsAndConsumerAreFound(t *testing.T) {
	path, _ := ring(t, 0)
	r := inspected(t, path, proc(t, path, 30, 20, -25, 30))
	want := []procs.Process{
		{PID: 20, Command: "prog20", Writable: true},
		{PID: 25, Command: "prog25"},
		{PID: 30, Command: "prog30", Writable: true},
	}
	if diff := cmp.Diff(want, r.Mapped); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&procs.Process{PID: 30, Command: "prog30", Writable: true}, r.Consumer); diff != "" {
		t.Error(diff)
	}
}

func TestAdviceFitsTheState(t *testing.T) {
	for name, tt := range map[string]struct {
		events  int
		closed  bool
		dropped uint64
		mode    fs.FileMode
		lock    int
		pids    []int
		euid    int // offset to this process's uid
		want    []string
	}{
		"healthy":          {events: 3, lock: 30, pids: []int{20, 30}},
		"no consumer":      {events: 3, pids: []int{20}},
		"wrong uid":        {events: 3, euid: 7, want: []string{"belongs to uid"}},
		"full, unread":     {events: 7, pids: []int{20}, want: []string{"has no consumer", "nixlring read --consume"}},
		"full, consumed":   {events: 7, lock: 30, pids: []int{20, 30}, want: []string{"NIXL_TELEMETRY_BUFFER_SIZE=32 (now 8)"}},
		"full, read":       {events: 7, pids: []int{20, 30}, want: []string{"NIXL_TELEMETRY_BUFFER_SIZE=32", "telemetry_reader"}},
		"two consumers":    {events: 1, lock: 30, pids: []int{20, 30, 40}, want: []string{"3 processes", "pmdanixl"}},
		"leftover":         {events: 3, closed: true, want: []string{"The agent has exited. The 3 events"}},
		"empty leftover":   {closed: true, want: []string{"The file can be removed"}},
		"leftover, full":   {events: 7, closed: true, want: []string{"The agent has exited. The 7 events"}},
		"staging was full": {events: 1, dropped: 100, pids: []int{20}, want: []string{"100 dropped events", "NIXL_TELEMETRY_BUFFER_SIZE=256 (now 8)"}},
		"writable by all":  {events: 1, mode: 0o666, want: []string{"chmod go-w"}},
		"read-only":        {events: 1, mode: 0o444, want: []string{"chmod u+w"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, w := ring(t, tt.events)
			if tt.dropped > 0 {
				must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeEventsDropped, tt.dropped)))
			}
			if tt.closed {
				must.OK(t, w.Close())
			}
			if tt.mode != 0 {
				must.OK(t, os.Chmod(path, tt.mode))
			}
			made := proc(t, path, tt.lock, tt.pids...)
			r := inspected(t, path, func(c *inspect.Config) {
				made(c)
				c.EUID += tt.euid
			})
			all := strings.Join(r.Advice, "\n")
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("no %q in: %s", want, all)
				}
			}
			if len(tt.want) == 0 && all != "" {
				t.Errorf("advice: %s", all)
			}
		})
	}
}

// If it is unknown whether the agent of a full ring is running, the advice must not claim
// that it loses events.
func TestAdviceAboutAFullRingOfAnotherUserIsConditional(t *testing.T) {
	path, w := ring(t, 7)
	must.OK(t, w.Close())
	r := inspected(t, path, func(c *inspect.Config) {
		c.EUID += 7
		c.Attend = func(string) procs.Attended { return procs.Attended{} }
	})
	all := strings.Join(r.Advice, "\n")
	if r.Unattended != nil || !strings.Contains(all, "If its agent is running") || strings.Contains(all, "has no consumer") {
		t.Errorf("%s", all)
	}
	made := proc(t, path, 0, 20) // its agent is visible
	r = inspected(t, path, func(c *inspect.Config) {
		made(c)
		c.Attend = func(string) procs.Attended { return procs.Attended{} }
	})
	if all := strings.Join(r.Advice, "\n"); !strings.Contains(all, "has no consumer") {
		t.Errorf("%s", all)
	}
}

func TestReportSaysThatTheConsumerIsUnknownAmongTooManyLocks(t *testing.T) {
	path, w := ring(t, 7)
	defer w.Close()
	made := proc(t, path, 30, 20)
	r := inspected(t, path, func(c *inspect.Config) {
		made(c)
		procstest.Flood(t, c.Proc)
	})
	var text strings.Builder
	must.OK(t, r.WriteText(&text, time.Now()))
	if all := text.String(); r.Consumer != nil || !strings.Contains(all, "unknown: "+procs.ManyLocks) || strings.Contains(all, "none of them holds") || strings.Contains(all, "no consumer") {
		t.Errorf("%s", all)
	}
}

func TestWatchingFindsTheLargestBurst(t *testing.T) {
	for name, tt := range map[string]struct {
		events int // per run interval
		want   string
	}{
		"small":  {events: 3}, // with 2, a burst would end at the ring's end, where a consumer waits before it takes the last event
		"large":  {events: 5, want: "Up to 5 events arrived within a run interval"},
		"filled": {events: 7, want: "was full while it was watched"},
	} {
		t.Run(name, func(t *testing.T) {
			path, w := ring(t, 0)
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
					must.OK(t, err)
					defer consumer.Close()
					time.Sleep(time.Millisecond) // synctest: between two polls
					for range 5 {
						time.Sleep(50 * time.Millisecond) // synctest
						for range tt.events {
							must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
						}
						time.Sleep(50 * time.Millisecond) // synctest
						_, err := consumer.Read(0, func(ringbuf.Batch) {})
						must.OK(t, errors.Join(err, consumer.Commit()))
					}
				}()
				r := inspected(t, path, func(c *inspect.Config) { c.For = 490 * time.Millisecond })
				<-done
				b := r.Burst
				if b == nil || b.Events != uint64(5*tt.events) || b.Most != uint64(tt.events) || b.PeakFill != tt.events || b.Missed {
					t.Fatalf("%+v", b)
				}
				if all := strings.Join(r.Advice, "\n"); !strings.Contains(all, tt.want) || (tt.want == "" && all != "") {
					t.Errorf("advice: %s", all)
				}
			})
		})
	}
}

func TestReportOnFilesThatAreNotRingsIsShort(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(dir, "letter")
	must.OK(t, os.WriteFile(letter, []byte(strings.Repeat("Dear Sir, ", 50)), 0o644))
	recorded := filepath.Join(dir, "x.jsonl.zst")
	out, err := os.Create(recorded)
	must.OK(t, err)
	rec, err := recorder.NewRecorder(recorder.RecorderConfig{Dir: t.TempDir(), Out: out})
	must.OK(t, err)
	must.OK(t, errors.Join(rec.Close(), out.Close()))
	link := filepath.Join(dir, "link")
	must.OK(t, os.Symlink("letter", link))
	for path, want := range map[string][2]string{
		letter:   {"not a NIXL telemetry ring: the file has no valid header"},
		dir:      {"it is a directory", "To list the rings in this directory, run: nixlring ls " + dir},
		link:     {"it is a symbolic link"},
		recorded: {"not a NIXL telemetry ring", "This is a recording of rings. Explain it with: nixlring why " + recorded},
	} {
		r := inspected(t, path, nil)
		var text strings.Builder
		must.OK(t, r.WriteText(&text, time.Now()))
		all := strings.Join(strings.Fields(text.String()), " ")
		if !strings.HasPrefix(all, "File "+path+" Problem ") || !strings.Contains(all, want[0]) || !strings.HasSuffix(all, want[1]) ||
			strings.Contains(all, "Modified") || strings.Contains(all, "In use") || strings.Contains(all, "Advice") != (want[1] != "") {
			t.Errorf("%s: %s", path, &text)
		}
	}
	cut := ringtest.Make(t, filepath.Join(dir, "cut"), ringtest.NewHeader(4, 64), 63*16)
	r := inspected(t, cut, nil)
	if r.Ring || !strings.Contains(r.Error, "was it truncated?") || r.Checks[len(r.Checks)-1].OK || !r.Checks[0].OK {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(strings.Join(r.Advice, ""), "restarts") {
		t.Errorf("%v", r.Advice)
	}
	for name, want := range map[string]string{"failed": "Try again later", "newer": "update nixlring"} {
		h := ringtest.Header{Capacity: 12, Mask: 11}
		if name == "newer" {
			h = ringtest.NewHeader(7, 8)
		}
		r := inspected(t, ringtest.Make(t, filepath.Join(dir, name), h, int(h.Capacity)*16), nil)
		if r.Ring || len(r.Advice) != 1 || !strings.Contains(r.Advice[0], want) {
			t.Errorf("%s: %v", name, r.Advice)
		}
	}
	if _, err := inspect.Inspect(t.Context(), inspect.Config{Path: filepath.Join(dir, "missing")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
