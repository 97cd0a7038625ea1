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

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestAgentIsFoundByEnvironment(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{
		pid: 100, start: 4711, name: "a) (b", exe: "/opt/venv/bin/python3.12 (deleted)", cgroup: inAPod,
		environ: enabled + "PASSWORD=secret\x00LOCAL_RANK=3\x00OTEL_SERVICE_NAME=decode\x00OTEL_RESOURCE_ATTRIBUTES=team=b,le=1\x00",
	})
	h.setProcess(task{pid: 101})
	s := New(Config{Proc: h.proc, Env: []string{"LOCAL_RANK"}, Attributes: []string{"team"}})
	want := []Process{{
		PID: 100, Start: 4711, NSPID: 7, Executable: "python3.12",
		Pod: "2d51509a-fcf0-41cc-b535-57cfeeaf73d1", Container: "0853fad78812e955b92d871d8d597d9bc598e34320c9edbfab0a73eacf150145",
		Env: map[string]string{
			"NIXL_TELEMETRY_ENABLE": "y", "NIXL_TELEMETRY_DIR": "/run/nixl", "LOCAL_RANK": "3",
			"OTEL_SERVICE_NAME": "decode",
		},
		Attributes: map[string]string{"service.name": "decode", "team": "b"},
		MountNS:    "mnt:[4026531841] " + h.root + " 0853fad78812e955b92d871d8d597d9bc598e34320c9edbfab0a73eacf150145", Dirs: []string{"/run/nixl"},
	}}
	for range 3 {
		if diff := cmp.Diff(want, h.scan(s, time.Minute)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestContainerHasTheNameOfItsTerminationLog(t *testing.T) {
	h := newHost(t)
	const pod = "2d51509a-fcf0-41cc-b535-57cfeeaf73d1"
	h.setProcess(task{pid: 10, environ: enabled, cgroup: inAPod, mountinfo: "519 512 254:1 /var/lib/kubelet/pods/" + pod +
		"/containers/decode/5ab0c3f1 /dev/termination-log rw - ext4 /dev/vda1 rw\n"})
	if all := h.scan(New(Config{Proc: h.proc}), 0); len(all) != 1 || all[0].ContainerName != "decode" {
		t.Errorf("processes %+v, want one in the container decode", all)
	}
}

func TestDirectoriesComeFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, environ string
		dirs, stores  []string
	}{
		{"ring", "NIXL_TELEMETRY_ENABLE=1\x00NIXL_TELEMETRY_DIR=/dev/shm/\x00", []string{"/dev/shm"}, nil},
		{"no directory", "NIXL_TELEMETRY_ENABLE=on\x00NIXL_TELEMETRY_EXPORTER=BUFFER\x00", []string{"/tmp"}, nil},
		{"relative to the working directory", "NIXL_TELEMETRY_ENABLE=1\x00NIXL_TELEMETRY_DIR=rings/../x\x00", []string{"/work/x"}, nil},
		{"store", "NIXL_TELEMETRY_ENABLE=1\x00NIXL_TELEMETRY_EXPORTER=prometheus_mp\x00NIXL_TELEMETRY_MULTIPROC_DIR=/dev/shm/nixl\x00", nil, []string{"/dev/shm/nixl"}},
		{"disabled", "NIXL_TELEMETRY_ENABLE=n\x00NIXL_TELEMETRY_DIR=/dev/shm\x00", nil, nil},
		{"another exporter", "NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_EXPORTER=prometheus\x00NIXL_TELEMETRY_DIR=/dev/shm\x00", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{pid: 100, environ: tt.environ, cwd: filepath.Join(h.root, "work")})
			var dirs, stores []string
			found := h.scan(New(Config{Proc: h.proc}), 0)
			for _, p := range found {
				dirs, stores = append(dirs, p.Dirs...), append(stores, p.Stores...)
			}
			if !slices.Equal(dirs, tt.dirs) || !slices.Equal(stores, tt.stores) || len(found) > 0 != (len(dirs)+len(stores) > 0) {
				t.Errorf("rings in %v, stores in %v", dirs, stores)
			}
		})
	}
}

func TestRelativeDirectoryOutsideRootIsIgnored(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{pid: 100, environ: "NIXL_TELEMETRY_ENABLE=1\x00NIXL_TELEMETRY_DIR=rings\x00", cwd: h.root + "-other"})
	if found := h.scan(New(Config{Proc: h.proc}), 0); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
}

// The kernel doesn't know variables that Python adds to os.environ.
func TestAgentIsFoundByMappings(t *testing.T) {
	const library = "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678 /opt/venv/lib/libnixl-6a1b.so.1\n"
	for _, tt := range []struct {
		name         string
		maps         func(h *host) string
		found        bool
		dirs, stores []string
	}{
		{"library", func(*host) string { return library }, true, nil, nil},
		{"ring", func(h *host) string { return h.ring("/dev/shm/agent") }, true, []string{"/dev/shm"}, nil},
		{"rings", func(h *host) string { return library + h.ring("/a/1") + h.ring("/b/2") + h.ring("/a/3") }, true, []string{"/a", "/b"}, nil},
		{"strange name", func(h *host) string { return h.ring("/dev/shm/a b\n(deleted)") }, true, []string{"/dev/shm"}, nil},
		{"ring, for reading", func(h *host) string { return strings.Replace(h.ring("/dev/shm/agent"), "rw-s", "r--s", 1) }, false, nil, nil},
		{"ring that was removed", func(h *host) string { return h.mapping("/dev/shm/agent (deleted)", 4096*16+os.Getpagesize()) }, false, nil, nil},
		{"ring outside of the root", func(h *host) string { return strings.ReplaceAll(h.ring("/dev/shm/agent"), h.root, "") }, false, nil, nil},
		{"other file of this size", func(h *host) string {
			h.write(filepath.Join(h.root, "file"), strings.Repeat("x", 65576))
			return h.mapping("/file", 65536+os.Getpagesize())
		}, false, nil, nil},
		{"store", func(h *host) string { return h.mapping("/dev/shm/nixl.17.ab.0.mmap", 8192) }, true, nil, []string{"/dev/shm"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{pid: 100, maps: tt.maps(h)})
			found := h.scan(New(Config{Proc: h.proc}), 0)
			if len(found) > 0 != tt.found {
				t.Fatalf("found = %+v", found)
			}
			for _, p := range found {
				if !slices.Equal(p.Dirs, tt.dirs) || !slices.Equal(p.Stores, tt.stores) || p.Executable != "python3" {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

func TestDirectoriesOfMappingsAreAddedToEnvironment(t *testing.T) {
	h := newHost(t)
	p := task{pid: 100, environ: enabled}
	h.setProcess(p)
	s := New(Config{Proc: h.proc})
	h.scan(s, 0)
	p.maps = h.ring("/run/nixl/agent") + h.ring("/run/nixl/group/agent")
	h.setProcess(p)
	found := h.scan(s, time.Minute)
	if len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/run/nixl", "/run/nixl/group"}) {
		t.Errorf("found = %+v", found)
	}
}

// If libnixl.so is mapped, a ring is likely, so the intervals stay short.
func TestScanIntervalsGrowUnlessNIXLIsMapped(t *testing.T) {
	const library = "7f1e4a228000-7f1e4a3bd000 r-xp 00028000 fe:00 5678 /opt/libnixl.so\n"
	for name, tt := range map[string]struct {
		maps       string
		runs, wait time.Duration
	}{
		"young":          {"", 0, time.Second},
		"old":            {"", time.Hour, time.Minute},
		"old, uses NIXL": {library, time.Hour, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			p := task{pid: 100, maps: tt.maps}
			h.setProcess(p)
			s := New(Config{Proc: h.proc})
			for h.scan(s, 0); tt.runs > 0; tt.runs -= time.Second {
				h.scan(s, time.Second)
			}
			if due := s.records[100].due; tt.wait < time.Minute && due.Sub(h.now) > tt.wait || due.Sub(h.now) > time.Minute {
				t.Errorf("due in %v", due.Sub(h.now))
			}
			p.maps += h.ring("/run/agent")
			h.setProcess(p)
			h.scan(s, tt.wait)
			if found := h.scan(s, 0); len(found) == 0 || len(found[0].Dirs) == 0 {
				t.Errorf("not found after %v", tt.wait)
			}
			if wait := s.records[100].wait; tt.wait == time.Minute && wait != tt.wait {
				t.Errorf("the interval is %v, want %v", wait, tt.wait)
			}
		})
	}
}

func TestExecIsDetected(t *testing.T) {
	for name, tt := range map[string]struct{ age, within time.Duration }{
		"young": {30 * time.Second, time.Second},
		"old":   {time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			p := task{pid: 100, exe: "/bin/bash"}
			h.setProcess(p)
			s := New(Config{Proc: h.proc})
			for ; tt.age > 0; tt.age -= time.Second {
				h.scan(s, time.Second)
			}
			p.exe, p.environ = "/usr/bin/python3", enabled
			h.setProcess(p)
			if found := h.scan(s, tt.within); len(found) != 1 || found[0].Executable != "python3" {
				t.Fatalf("found = %+v", found)
			}
			p.exe, p.environ = "/bin/sleep", ""
			h.setProcess(p)
			if found := h.scan(s, time.Second); len(found) != 0 {
				t.Errorf("found = %+v", found)
			}
		})
	}
}

// The exe link doesn't change, so only the next examination detects this.
func TestExecOfSameProgramIsDetected(t *testing.T) {
	h := newHost(t)
	p := task{pid: 100}
	h.setProcess(p)
	s := New(Config{Proc: h.proc})
	h.scan(s, 0)
	p.environ, p.maps = enabled, "\n" // changes the size of the mappings
	h.setProcess(p)
	if found := h.scan(s, time.Second); len(found) != 1 {
		t.Errorf("found = %+v", found)
	}
}

// Mappings of the same size are still read occasionally, because a ring may replace
// another one.
func TestMappingsOfSameSizeAreReadRarely(t *testing.T) {
	h := newHost(t)
	first, second := h.ring("/a/agent"), h.ring("/b/agent")
	p := task{pid: 100, maps: first}
	h.setProcess(p)
	s := New(Config{Proc: h.proc})
	h.scan(s, 0)
	p.maps = second
	h.setProcess(p)
	for range maxUnchanged {
		if found := h.scan(s, time.Minute); len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/a"}) {
			t.Errorf("found = %+v", found)
		}
	}
	if found := h.scan(s, time.Minute); len(found) != 1 || !slices.Equal(found[0].Dirs, []string{"/b"}) {
		t.Errorf("found = %+v", found)
	}
}

func TestMappedFileThatBecomesARingIsFound(t *testing.T) {
	h := newHost(t)
	maps := h.ring("/run/agent")
	path := filepath.Join(h.root, "run/agent")
	ring, err := os.ReadFile(path)
	must.OK(t, err)
	h.write(path, string(make([]byte, len(ring))))
	h.setProcess(task{pid: 100, maps: maps})
	s := New(Config{Proc: h.proc})
	if found := h.scan(s, 0); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
	h.write(path, string(ring))
	if found := h.scan(s, time.Second); len(found) != 1 {
		t.Errorf("found = %+v", found)
	}
}

func TestExitIsDetected(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{pid: 100, environ: enabled})
	h.setProcess(task{pid: 200, environ: enabled})
	s := New(Config{Proc: h.proc})
	if got := h.pids(s, 0); !slices.Equal(got, []int{100, 200}) {
		t.Fatalf("PIDs = %v", got)
	}
	h.exit(100)
	if err := os.Remove(h.path(200, "exe")); err != nil { // a zombie has no program
		t.Fatal(err)
	}
	if got := h.pids(s, time.Second); len(got) != 0 {
		t.Errorf("PIDs = %v", got)
	}
}

func TestReusedPIDIsExaminedAgain(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{pid: 100, start: 1, environ: enabled})
	s := New(Config{Proc: h.proc})
	h.scan(s, 0)
	h.exit(100)
	h.setProcess(task{pid: 100, start: 2, environ: enabled, cgroup: inAPod})
	found := h.scan(s, time.Second)
	if len(found) != 1 || found[0].Start != 2 || found[0].Pod == "" {
		t.Errorf("found = %+v", found)
	}
	h.exit(100)
	h.setProcess(task{pid: 100, start: 3})
	if found := h.scan(s, time.Second); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
}

// The inode of a process's directory changes when the kernel reclaims memory.
func TestChangedInodeCausesNoExamination(t *testing.T) {
	h := newHost(t)
	p := task{pid: 100, environ: enabled}
	h.setProcess(p)
	s := New(Config{Proc: h.proc})
	h.scan(s, 0)
	h.exit(100)
	p.environ = strings.Repeat("\x00", 100) // another examination would not find an agent
	h.setProcess(p)
	if got := h.pids(s, 0); !slices.Equal(got, []int{100}) {
		t.Errorf("PIDs = %v", got)
	}
}

// After an exit, any file of the process may be missing.
func TestProcessThatExitsDuringExaminationIsSkipped(t *testing.T) {
	for _, name := range []string{"stat", "statm", "status", "environ", "maps", "cgroup", "exe", "root", "ns/mnt"} {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			h := newHost(t)
			for pid := 100; pid < 103; pid++ {
				h.setProcess(task{pid: pid, environ: enabled})
			}
			must.OK(t, os.Remove(h.path(101, name)))
			s := New(Config{Proc: h.proc})
			for range 3 {
				if got := h.pids(s, time.Second); !slices.Equal(got, []int{100, 102}) {
					t.Errorf("PIDs = %v", got)
				}
			}
		})
	}
}

// Programs that set their title overwrite their environment. The fallbacks are an earlier
// examination and the ancestors.
func TestOverwrittenEnvironmentHasFallbacks(t *testing.T) {
	const overwritten = "EngineCore\x00\x00\x00\x00"
	t.Run("its own, read earlier", func(t *testing.T) {
		h := newHost(t)
		p := task{pid: 100, environ: enabled}
		h.setProcess(p)
		s := New(Config{Proc: h.proc})
		h.scan(s, 0)
		p.environ = overwritten
		h.setProcess(p)
		for range 3 {
			if found := h.scan(s, time.Minute); len(found) != 1 || found[0].Env["NIXL_TELEMETRY_ENABLE"] != "y" {
				t.Errorf("found = %+v", found)
			}
		}
	})
	for name, tt := range map[string]struct {
		tasks []task
		found bool
	}{
		"parent's":                     {[]task{{pid: 10, environ: enabled}}, true},
		"grandparent's":                {[]task{{pid: 10, parent: 5, environ: overwritten}, {pid: 5, environ: enabled}}, true},
		"another container's":          {[]task{{pid: 10, environ: enabled, namespace: "mnt:[1]"}}, false},
		"parent has no NIXL variables": {[]task{{pid: 10, parent: 5, environ: "A=B\x00"}, {pid: 5, environ: enabled}}, false},
		"parent has exited":            {nil, false},
		"parent is its own parent":     {[]task{{pid: 10, parent: 10, environ: overwritten}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.setProcess(task{pid: 100, parent: 10, environ: overwritten})
			for _, p := range tt.tasks {
				h.setProcess(p)
			}
			if got := h.pids(New(Config{Proc: h.proc}), 0); slices.Contains(got, 100) != tt.found {
				t.Errorf("PIDs = %v", got)
			}
		})
	}
}

// The Collector also has rings mapped.
func TestOwnProcessIsSkipped(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{pid: 100, environ: enabled})
	h.setProcess(task{pid: 200, environ: enabled})
	h.link("100", filepath.Join(h.proc, "self"))
	if got := h.pids(New(Config{Proc: h.proc}), 0); !slices.Equal(got, []int{200}) {
		t.Errorf("PIDs = %v", got)
	}
}

func TestOtherFilesInProcAreSkipped(t *testing.T) {
	h := newHost(t)
	h.write(filepath.Join(h.proc, "meminfo"), "")
	for _, name := range []string{"sys", "1x", "0", "99999999999999999999"} {
		h.mkdir(filepath.Join(h.proc, name))
		h.link("/bin/cat", filepath.Join(h.proc, name, "exe"))
	}
	h.setProcess(task{pid: 100, environ: enabled})
	if got := h.pids(New(Config{Proc: h.proc}), 0); !slices.Equal(got, []int{100}) {
		t.Errorf("PIDs = %v", got)
	}
}

func TestScanFailsWithoutProc(t *testing.T) {
	if found, err := New(Config{Proc: filepath.Join(t.TempDir(), "none")}).Scan(time.Now(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found = %v, error = %v", found, err)
	}
}
