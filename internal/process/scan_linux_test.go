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

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

const library = "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678 /opt/venv/lib/libnixl-6a1b.so.1\n"

func TestAgentIsFoundByEnvironment(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{
		PID: 100, NSPID: 7, Start: 4711, Name: "a) (b", Executable: "/opt/venv/bin/python3.12 (deleted)", Cgroup: inAPod,
		Env: append(slices.Clone(enabled), "PASSWORD=secret", "LOCAL_RANK=3", "OTEL_SERVICE_NAME=decode", "OTEL_RESOURCE_ATTRIBUTES=team=b,le=1"),
		Mounts: "519 512 254:1 /var/lib/kubelet/pods/" + uid +
			"/containers/decode/5ab0c3f1 /dev/termination-log rw - ext4 /dev/vda1 rw\n",
	})
	h.setProcess(task{PID: 101})
	s := New(Config{Proc: h.Proc, Env: []string{"LOCAL_RANK"}, Attributes: []string{"team"}})
	want := []Process{{
		PID: 100, Start: 4711, NSPID: 7, Executable: "python3.12", Pod: uid, Container: id, ContainerName: "decode",
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

func TestDirectoriesComeFromEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		env  []string
		dirs []string
	}{
		"ring":         {env: []string{"NIXL_TELEMETRY_DIR=/dev/shm/"}, dirs: []string{"/dev/shm"}},
		"no directory": {env: []string{"NIXL_TELEMETRY_EXPORTER=BUFFER"}, dirs: []string{"/tmp"}},
		"not clean":    {env: []string{"NIXL_TELEMETRY_DIR=/rings/../x"}, dirs: []string{"/x"}},
		"relative":     {env: []string{"NIXL_TELEMETRY_DIR=rings"}},
		"store": {
			env:  []string{"NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=/dev/shm/nixl", "NIXL_TELEMETRY_DIR=/run"},
			dirs: []string{"/dev/shm/nixl"},
		},
		"disabled":         {env: []string{"NIXL_TELEMETRY_ENABLE=n", "NIXL_TELEMETRY_DIR=/dev/shm"}},
		"another exporter": {env: []string{"NIXL_TELEMETRY_EXPORTER=prometheus", "NIXL_TELEMETRY_DIR=/dev/shm"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{PID: 100, Env: append(tt.env, "NIXL_TELEMETRY_ENABLE=1")})
			var dirs []string
			for _, p := range h.scan(New(Config{Proc: h.Proc}), 0) {
				dirs = p.Dirs
			}
			if !slices.Equal(dirs, tt.dirs) {
				t.Errorf("directories are %v, want %v", dirs, tt.dirs)
			}
		})
	}
}

// The kernel doesn't know variables that Python adds to os.environ.
func TestAgentIsFoundByMappings(t *testing.T) {
	type found struct {
		Dirs  []string
		Rings int
	}
	for name, tt := range map[string]struct {
		maps func(h *host) string
		want *found
	}{
		"library":           {func(*host) string { return library }, &found{}},
		"ring":              {func(h *host) string { return h.ring("/dev/shm/agent") }, &found{Dirs: []string{"/dev/shm"}, Rings: 1}},
		"rings":             {func(h *host) string { return library + h.ring("/a/1") + h.ring("/b/2") + h.ring("/a/3") }, &found{Dirs: []string{"/a", "/b"}, Rings: 3}},
		"strange name":      {func(h *host) string { return h.ring("/dev/shm/a b\n(deleted)") }, &found{Dirs: []string{"/dev/shm"}, Rings: 1}},
		"ring, for reading": {func(h *host) string { return strings.Replace(h.ring("/dev/shm/agent"), "rw-s", "r--s", 1) }, nil},
		"ring that was removed": {func(h *host) string {
			return h.mapping("/dev/shm/agent (deleted)")
		}, nil},
		"ring outside of the root": {func(h *host) string { return strings.ReplaceAll(h.ring("/dev/shm/agent"), h.root, "") }, nil},
		"other file of this size": {func(h *host) string {
			h.write(filepath.Join(h.root, "file"), strings.Repeat("x", ringSize))
			return h.mapping("/file")
		}, nil},
		"ring of a newer version": {func(h *host) string {
			m := h.ring("/run/agent")
			ringtest.Edit(h.t, filepath.Join(h.root, "run/agent"), func(r *ringtest.Header) { r.Version = 5 })
			return m
		}, &found{Dirs: []string{"/run"}, Rings: 1}},
		"store": {func(h *host) string { return h.mapping("/dev/shm/nixl.17.ab.0.mmap") }, &found{Dirs: []string{"/dev/shm"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{PID: 100, Mappings: tt.maps(h)})
			var got *found
			for _, p := range h.scan(New(Config{Proc: h.Proc}), 0) {
				got = &found{p.Dirs, len(p.Rings)}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMappedRingsAreAddedToEnvironment(t *testing.T) {
	h := newHost(t)
	p := task{PID: 100, Env: enabled}
	h.setProcess(p)
	s := New(Config{Proc: h.Proc})
	h.scan(s, 0)
	p.Mappings = h.ring("/run/nixl/agent") + h.ring("/run/nixl/group/agent")
	h.setProcess(p)
	found := h.scan(s, time.Minute)
	if len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/run/nixl", "/run/nixl/group"}) {
		t.Fatalf("found = %+v", found)
	}
	var want []files.ID
	for _, path := range []string{"run/nixl/agent", "run/nixl/group/agent"} {
		info, err := os.Stat(filepath.Join(h.root, path))
		must.OK(t, err)
		want = append(want, files.IDOf(info))
	}
	if diff := cmp.Diff(want, found[0].Rings); diff != "" {
		t.Error(diff)
	}
}

// Many processes may have many files mapped.
func TestOnlyRingsAreKeptAndTheirNumberIsLimited(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.root, "file"), strings.Repeat("x", ringSize))
	h.setProcess(task{PID: 100, Env: enabled, Mappings: strings.Repeat(h.mapping("/file"), maxRings-1) + h.ring("/a/1") + h.ring("/b/2")})
	h.setProcess(task{PID: 101, Env: enabled, Mappings: strings.Repeat(h.ring("/a/3"), 2*maxRings)})
	var got []int
	for _, p := range h.scan(New(Config{Proc: h.Proc}), 0) {
		got = append(got, len(p.Rings))
	}
	if diff := cmp.Diff([]int{1, maxRings}, got); diff != "" {
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
		{removed + strings.Repeat(next, maxRings-1), maxRings},
		{h.mapping("/memfd:other (deleted)"), 0},
		{removed, 0}, // which one?
		{next + h.ring("/run/1") + h.ring("/run/2"), 3},
		{removed + strings.Repeat(next, maxRings-1), maxRings},
		{next, 1},
		{h.mapping("/run/other"), 0},
	} {
		h.setProcess(task{PID: 100, Library: "/lib/libnixl.so", Mappings: tt.mapped})
		if strings.Contains(tt.mapped, "deleted") {
			_ = os.Remove(filepath.Join(h.root, "run/agent"))
		}
		found := h.scan(s, maxUnchanged*maxIntervalNIXL)
		if len(found) != 1 || len(found[0].Rings) != tt.want || min(len(found[0].Rings), 1) != len(found[0].Dirs) {
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

func TestExecIsDetected(t *testing.T) {
	h := newHost(t)
	p := task{PID: 100, Executable: "/bin/bash"}
	h.setProcess(p)
	s := New(Config{Proc: h.Proc})
	for range 10 {
		h.scan(s, time.Minute)
	}
	p.Executable, p.Env, p.Cgroup = "/usr/bin/python3", enabled, inAPod
	h.setProcess(p)
	if found := h.scan(s, time.Second); len(found) != 1 || found[0].Executable != "python3" || found[0].Pod != uid {
		t.Fatalf("found = %+v", found)
	}
	p.Executable, p.Env = "/bin/sleep", nil
	h.setProcess(p)
	if found := h.scan(s, time.Second); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
}

// The exe link doesn't change, so only the next examination detects this.
func TestExecOfSameProgramIsDetected(t *testing.T) {
	h := newHost(t)
	p := task{PID: 100}
	h.setProcess(p)
	s := New(Config{Proc: h.Proc})
	h.scan(s, 0)
	p.Env, p.Mappings = enabled, "\n" // changes the size of the mappings
	h.setProcess(p)
	if found := h.scan(s, time.Second); len(found) != 1 {
		t.Errorf("found = %+v", found)
	}
}

// Mappings of the same size are still read occasionally, because a ring may replace another one,
// and whenever the caller asks for it.
func TestMappingsOfSameSizeAreReadRarely(t *testing.T) {
	for name, scans := range map[string]int{"occasionally": maxUnchanged, "asked for": 3} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			first, second := h.ring("/a/agent"), h.ring("/b/agent")
			p := task{PID: 100, Mappings: first}
			h.setProcess(p)
			s := New(Config{Proc: h.Proc})
			h.scan(s, 0)
			p.Mappings = second
			h.setProcess(p)
			for range scans {
				if found := h.scan(s, time.Minute); len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/a"}) {
					t.Errorf("found = %+v", found)
				}
			}
			after := time.Minute
			if name == "asked for" {
				after = 0
				for _, ask := range []bool{false, true} {
					_, err := s.Scan(h.now, func(p Process) bool { return ask && p.PID == 100 })
					must.OK(t, err)
				}
			}
			if found := h.scan(s, after); len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/b"}) {
				t.Errorf("found = %+v", found)
			}
		})
	}
}

func TestExitIsDetected(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{PID: 100, Env: enabled})
	h.setProcess(task{PID: 200, Env: enabled})
	s := New(Config{Proc: h.Proc})
	if got := h.pids(s, 0); !slices.Equal(got, []int{100, 200}) {
		t.Fatalf("PIDs = %v", got)
	}
	h.exit(100)
	must.OK(t, os.Remove(h.Path(200, "exe"))) // a zombie has no program
	if got := h.pids(s, time.Second); len(got) != 0 {
		t.Errorf("PIDs = %v", got)
	}
}

func TestReusedPIDIsExaminedAgain(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{PID: 100, Start: 1, Env: enabled})
	s := New(Config{Proc: h.Proc})
	h.scan(s, 0)
	h.setProcess(task{PID: 100, Start: 2, Env: enabled, Cgroup: inAPod})
	found := h.scan(s, time.Second)
	if len(found) != 1 || found[0].Start != 2 || found[0].Pod == "" {
		t.Errorf("found = %+v", found)
	}
	h.setProcess(task{PID: 100, Start: 3})
	if found := h.scan(s, time.Second); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
	// The PID of a process that doesn't use NIXL is reused by one that has overwritten its environment.
	h.setProcess(task{PID: 10, Env: enabled})
	h.setProcess(task{PID: 100, Start: 4, Parent: 10, Env: overwritten, Mappings: "\n"})
	h.scan(s, time.Minute)
	if found := h.scan(s, 0); len(found) != 2 || found[1].Start != 4 {
		t.Errorf("found = %+v", found)
	}
}

// After an exit, any file of the process may be missing.
func TestProcessThatExitsDuringExaminationIsSkipped(t *testing.T) {
	for _, name := range []string{"stat", "statm", "status", "environ", "maps", "cgroup", "exe", "root", "ns/mnt"} {
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

// Programs that set their title overwrite their environment. The fallbacks are an earlier
// examination and the ancestors.
func TestOverwrittenEnvironmentHasFallbacks(t *testing.T) {
	ancestors := func(n int) (list []task) {
		for pid := 10; pid < 10+n; pid++ {
			list = append(list, task{PID: pid, Parent: pid + 1, Env: overwritten})
		}
		return append(list, task{PID: 10 + n, Env: enabled})
	}
	for name, tt := range map[string]struct {
		tasks []task
		found bool
	}{
		"its own, read earlier":          {[]task{{PID: 100, Env: enabled}}, true},
		"parent's":                       {ancestors(0), true},
		"grandparent's":                  {ancestors(1), true},
		"of an ancestor, 8 generations":  {ancestors(7), true},
		"of an ancestor, 9 generations":  {ancestors(8), false},
		"another container's":            {[]task{{PID: 10, Env: enabled, Namespace: "mnt:[1]"}}, false},
		"parent has no NIXL variables":   {[]task{{PID: 10, Parent: 5, Env: []string{"A=B"}}, {PID: 5, Env: enabled}}, false},
		"parent has exited":              {nil, false},
		"parent is its own parent":       {[]task{{PID: 10, Parent: 10, Env: overwritten}}, false},
		"another container's, read here": {[]task{{PID: 10, Parent: 5, Env: overwritten, Namespace: "mnt:[1]"}, {PID: 5, Env: enabled}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			s := New(Config{Proc: h.Proc})
			for _, p := range tt.tasks {
				h.setProcess(p)
			}
			h.scan(s, 0)
			h.setProcess(task{PID: 100, Parent: 10, Env: overwritten, Mappings: "\n"})
			for range 3 {
				if got := h.pids(s, time.Minute); slices.Contains(got, 100) != tt.found {
					t.Errorf("PIDs = %v", got)
				}
			}
		})
	}
}

// The Collector also has rings mapped.
func TestOwnProcessIsSkipped(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{PID: 4194304, Env: enabled})
	h.setProcess(task{PID: 200, Env: enabled})
	if got := h.pids(New(Config{Proc: h.Proc}), 0); !slices.Equal(got, []int{200}) {
		t.Errorf("PIDs = %v", got)
	}
}

func TestOtherFilesInProcAreSkipped(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{PID: 100, Env: enabled})
	h.write(filepath.Join(h.Proc, "meminfo"), "")
	for _, name := range []string{"sys", "1x", "0", "-3", "99999999999999999999"} {
		must.OK(t, os.Symlink(h.Path(100), filepath.Join(h.Proc, name)))
	}
	if got := h.pids(New(Config{Proc: h.Proc}), 0); !slices.Equal(got, []int{100}) {
		t.Errorf("PIDs = %v", got)
	}
}

func TestScanFailsWithoutProc(t *testing.T) {
	if found, err := New(Config{Proc: filepath.Join(t.TempDir(), "none")}).Scan(time.Now(), nil); found != nil || !errors.Is(err, fs.ErrNotExist) {
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
