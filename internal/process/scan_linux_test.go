// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

const library = "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678 /opt/venv/lib/libnixl-6a1b.so.1\n"

func TestAgentIsFoundByEnvironment(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{
		PID: 100, Start: 4711, Name: "a) (b", Executable: "/opt/venv/bin/python3.12 (deleted)", Cgroup: inAPod,
		Env: append(slices.Clone(enabled), "PASSWORD=secret", "LOCAL_RANK=3", "OTEL_SERVICE_NAME=decode", "OTEL_RESOURCE_ATTRIBUTES=team=b,le=1"),
		Mounts: "519 512 254:1 /var/lib/kubelet/pods/" + uid +
			"/containers/decode/5ab0c3f1 /dev/termination-log rw - ext4 /dev/vda1 rw\n",
	})
	h.setProcess(task{PID: 101})
	s := New(Config{Proc: h.Proc, Env: []string{"LOCAL_RANK"}, Attributes: []string{"team"}})
	want := []Process{{
		PID: 100, Start: 4711, Executable: "python3.12", Pod: uid, Container: id, ContainerName: "decode", Group: id, Agent: true, Own: true, Known: true,
		Env: map[string]string{
			"NIXL_TELEMETRY_ENABLE": "y", "NIXL_TELEMETRY_DIR": "/run/nixl", "LOCAL_RANK": "3", "OTEL_SERVICE_NAME": "decode",
		},
		Attributes: map[string]string{"service.name": "decode", "team": "b"},
		MountNS:    "mnt:[4026531841] " + h.root + " " + id, Dirs: []string{"/run/nixl"},
	}}
	for range 3 {
		if diff := cmp.Diff(want, h.scan(s, time.Minute)); diff != "" {
			t.Error(diff)
		}
	}
}

// Many processes may have many files mapped.
func TestOnlyRingsAreKeptAndTheirNumberIsLimited(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.root, "file"), strings.Repeat("x", ringSize))
	h.setProcess(task{PID: 100, Env: enabled, Mappings: strings.Repeat(h.mapping("/file"), maxFiles-1) + h.ring("/a/1") + h.ring("/b/2")})
	h.setProcess(task{PID: 101, Env: enabled, Mappings: strings.Repeat(h.ring("/a/3"), 2*maxFiles)})
	var got []int
	for _, p := range h.scan(New(Config{Proc: h.Proc}), 0) {
		got = append(got, len(p.Files))
	}
	if diff := cmp.Diff([]int{1, maxFiles}, got); diff != "" {
		t.Error(diff)
	}
}

// The file of a removed ring can't be opened, but its agent runs as long as its process has it mapped.
func TestRemovedRingStaysMapped(t *testing.T) {
	h := newHost(t)
	ring, removed, next, s := h.ring("/run/agent"), h.mapping("/run/agent (deleted)"), h.ring("/run/next"), New(Config{Proc: h.Proc})
	h.write(filepath.Join(h.root, "run", "other"), "no ring")
	for _, tt := range []struct {
		mapped string
		want   int
	}{
		{ring, 1},
		{removed, 1},
		{removed + next, 2},
		{removed + next + h.mapping("/run/other"), 2},
		{removed + strings.Repeat(next, maxFiles-1), maxFiles},
		{h.mapping("/memfd:other (deleted)"), 0},
		{removed, 0}, // which one?
		{next + h.ring("/run/1") + h.ring("/run/2"), 3},
		{removed + strings.Repeat(next, maxFiles-1), maxFiles},
		{next, 1},
		{h.mapping("/run/other"), 0},
	} {
		h.setProcess(task{PID: 100, Library: "/lib/libnixl.so", Mappings: tt.mapped})
		if strings.Contains(tt.mapped, "deleted") {
			_ = os.Remove(filepath.Join(h.root, "run/agent"))
		}
		found := h.scan(s, maxUnchanged*maxIntervalNIXL)
		if len(found) != 1 || len(found[0].Files) != tt.want || min(len(found[0].Files), 1) != len(found[0].Dirs) {
			t.Errorf("with %q: %+v", tt.mapped, found)
		}
	}
}

// If libnixl.so is mapped, a ring is likely, so the intervals stay short.
func TestScanIntervalsGrowUnlessNIXLIsMapped(t *testing.T) {
	for name, tt := range map[string]struct {
		maps       string
		runs, wait time.Duration
	}{
		"young":          {"", 0, time.Second},
		"old":            {"", time.Hour + time.Minute/2, time.Minute}, // between two examinations
		"old, uses NIXL": {library, time.Hour + time.Minute/2, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			p := task{PID: 100, Mappings: tt.maps}
			h.setProcess(p)
			s := New(Config{Proc: h.Proc})
			for h.scan(s, 0); tt.runs > 0; tt.runs -= time.Second {
				h.scan(s, time.Second)
			}
			if due := s.records[100].due.Sub(h.now); due <= 0 || due > tt.wait {
				t.Errorf("due in %v", due)
			}
			p.Mappings += h.ring("/run/agent")
			h.setProcess(p)
			if found := h.scan(s, tt.wait); len(found) == 0 || len(found[0].Dirs) == 0 {
				t.Errorf("not found after %v", tt.wait)
			}
			if wait := s.records[100].wait; tt.wait == time.Minute && wait != tt.wait {
				t.Errorf("the interval is %v, want %v", wait, tt.wait)
			}
		})
	}
}

// After an exit, any file of the process may be missing.
func TestProcessThatExitsDuringExaminationIsSkipped(t *testing.T) {
	for _, name := range []string{"stat", "statm", "environ", "maps", "cgroup", "exe", "root", "ns/mnt"} {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			h := newHost(t)
			for pid := 100; pid < 103; pid++ {
				h.setProcess(task{PID: pid, Env: enabled})
			}
			must.OK(t, os.Remove(h.Path(101, name)))
			s := New(Config{Proc: h.Proc})
			for range 3 {
				if got := h.pids(s, time.Second); !slices.Equal(got, []int{100, 102}) {
					t.Errorf("PIDs = %v", got)
				}
			}
			if _, err := s.Config.examine(state{Process: Process{PID: 101}}); name != "statm" && name != "cgroup" && !errors.Is(err, ErrExited) {
				t.Errorf("error %v, want ErrExited", err)
			}
		})
	}
}

// Some processes can't be examined even with all capabilities.
func TestMissingPermissionIsReportedIfMostProcessesCannotBeExamined(t *testing.T) {
	self, err := os.ReadFile("/proc/self/status")
	must.OK(t, err)
	denied, other := &record{err: fs.ErrPermission}, &record{}
	for _, tt := range []struct {
		records map[int]*record
		want    bool
	}{
		{map[int]*record{1: other, 2: other}, false},
		{map[int]*record{1: denied, 2: other}, !privileged(self)},
		{map[int]*record{1: denied, 2: denied, 3: other}, true},
	} {
		if err := (&Scanner{records: tt.records}).permissionError(); errors.Is(err, fs.ErrPermission) != tt.want {
			t.Errorf("%d processes: error %v", len(tt.records), err)
		}
	}
}

func TestScanFailsWithoutProc(t *testing.T) {
	if found, err := New(Config{Proc: filepath.Join(t.TempDir(), "none")}).Scan(time.Now(), false); found != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found = %v, error = %v", found, err)
	}
}

func TestScansLeaveNoFilesOpen(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{PID: 10, Env: enabled})
	h.setProcess(task{PID: 100, Parent: 10, Env: overwritten, Cgroup: inAPod, Mappings: h.ring("/run/nixl/agent")})
	var open []int
	for range 2 { // the first one opens what the runtime needs
		h.scan(New(Config{Proc: h.Proc}), 0)
		list, err := os.ReadDir("/proc/self/fd")
		must.OK(t, err)
		open = append(open, len(list))
	}
	if open[1] > open[0] {
		t.Errorf("%d files are open, then %d", open[0], open[1])
	}
}
