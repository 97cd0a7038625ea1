// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// block makes a file of a process block its readers.
func (h *host) block(pid int, name string) {
	h.t.Helper()
	path := h.path(pid, name)
	must.OK(h.t, os.Remove(path))
	must.OK(h.t, syscall.Mkfifo(path, 0o600))
}

// unblock passes contents to the blocked reader of a file, and replaces the file with a
// regular one.
func (h *host) unblock(path, contents string) {
	h.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
	must.OK(h.t, err)
	must.OK(h.t, os.Remove(path))
	h.write(path, contents)
	_, err = f.WriteString(contents)
	if err := errors.Join(err, f.Close()); err != nil {
		h.t.Error(err)
	}
}

// A process can block readers of its environment and of its mappings.
func TestHangingProcessDelaysOnlyOneScan(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"environ", "maps"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.setProcess(task{pid: 100, environ: enabled})
			h.setProcess(task{pid: 101})
			h.setProcess(task{pid: 102, environ: enabled})
			h.block(101, name)
			s := New(Config{Proc: h.proc})
			for scan := range 3 { // only the first scan takes time
				found, err := scanUntilDone(s, h.now, 101)
				if len(found) != 2 || errors.Is(err, errHangs) != (scan > 0) {
					t.Errorf("scan %d: found = %+v, error = %v", scan, found, err)
				}
			}
			contents := enabled
			if name == "maps" {
				contents = h.ring("/run/agent")
			}
			h.unblock(h.path(101, name), contents)
			<-s.hanging[0].done
			if got := h.pids(s, 0); !slices.Equal(got, []int{100, 101, 102}) {
				t.Errorf("PIDs = %v", got)
			}
		})
	}
}

// However many processes of a container hang, those of others are found by the same scan.
func TestHangingProcessesOfOneContainerAreLimited(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const first, last = 100, 109
	for pid := first; pid <= last; pid++ {
		h.setProcess(task{pid: pid, cgroup: strings.Replace(inAPod, "\n", "/"+strconv.Itoa(pid)+"\n", 1)})
		h.block(pid, "environ")
	}
	h.setProcess(task{pid: 200, environ: enabled})
	s := New(Config{Proc: h.proc})
	for range 3 {
		found, _ := s.Scan(h.now, nil)
		if len(found) != 1 || len(s.hanging) != maxHangingGroup {
			t.Errorf("found = %+v, %d processes hang", found, len(s.hanging))
		}
	}
	waiting := slices.Clone(s.hanging)
	for pid := first; pid <= last; pid++ {
		if !slices.ContainsFunc(waiting, func(x *examination) bool { return x.record.pid == pid }) {
			h.exit(pid)
		}
	}
	for _, x := range waiting {
		h.unblock(h.path(x.record.pid, "environ"), "")
		<-x.done
	}
	if found := h.scan(s, 0); len(found) != 1 || len(s.hanging) > 0 {
		t.Errorf("found = %+v, %d processes hang", found, len(s.hanging))
	}
}

// The process has exited when the examination ends.
func TestResultOfHangingProcessIsIgnoredAfterPIDReuse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.setProcess(task{pid: 100, start: 1})
	h.block(100, "environ")
	s := New(Config{Proc: h.proc})
	if _, err := scanUntilDone(s, h.now, 100); err != nil {
		t.Fatal(err)
	}
	x := s.hanging[0]
	exited := h.exit(100)
	h.setProcess(task{pid: 100, start: 2})
	if found, _ := scanUntilDone(s, h.now, 100); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
	h.unblock(filepath.Join(exited, "environ"), enabled)
	<-x.done
	if found := h.scan(s, 0); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
}

// A container with many processes, or with processes that hang, can't delay others.
func TestContainersTakeTurns(t *testing.T) {
	h := newHost(t)
	h.setProcess(task{pid: 10, cgroup: "0::/hangs\n"})
	for pid := range 3 {
		h.setProcess(task{pid: 100 + pid, cgroup: inAPod})
		h.setProcess(task{pid: 200 + pid, cgroup: "0::/other\n"})
	}
	s := New(Config{Proc: h.proc})
	entries, err := list(h.proc, s.listing[:], nil)
	must.OK(t, err)
	for _, e := range entries {
		s.visit(e, h.now)
	}
	s.hanging = []*examination{{record: &record{group: "0::/hangs\n"}}}
	var order []int
	for _, r := range s.due(h.now, nil) {
		order = append(order, r.pid)
	}
	if want := []int{100, 200, 101, 201, 102, 202, 10}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	s.examineAll(s.due(h.now, nil), h.now, 0)
	if left := len(s.due(h.now, nil)); left != 7 {
		t.Errorf("%d processes are due after a scan without time, want 7", left)
	}
}

// hostile creates a container's root with links and special files in directories of
// rings. Some of the links lead outside the root.
func hostile(t *testing.T) (h *host, p Process) {
	t.Helper()
	h = newHost(t)
	outside := t.TempDir()
	h.mkdir(filepath.Join(outside, "rings"))
	h.ring("/run/nixl/agent")
	h.mkdir(filepath.Join(h.root, "proc/1"))
	for link, target := range map[string]string{
		"var-run":       "/run",
		"relative":      "run/nixl",
		"out":           outside,
		"up":            "../../../../../../../../" + outside,
		"run/nixl/out":  outside,
		"run/nixl/back": "/run",
		"proc/1/root":   "/proc/self/root",
		"loop":          "/loop",
	} {
		h.link(target, filepath.Join(h.root, link))
	}
	must.OK(t, syscall.Mkfifo(filepath.Join(h.root, "fifo"), 0o600))
	h.write(filepath.Join(h.root, "file"), "")
	h.setProcess(task{pid: 100, environ: enabled})
	return h, Process{PID: 100, Start: 500}
}

func TestOpenDirStaysInRoot(t *testing.T) {
	h, p := hostile(t)
	for _, tt := range []struct {
		dir, name string
		want      error
	}{
		{"/run/nixl", ".", nil},
		{"/run", "nixl", nil},
		{"/", "run/nixl", nil},
		{"/run/../run/./nixl/", ".", nil},
		{"/../../run/nixl", ".", nil},
		{"/var-run/nixl", ".", nil}, // in most images, /var/run is a link to /run
		{"/relative", ".", nil},
		{"/none", ".", fs.ErrNotExist},
		{"/run/nixl", "none", fs.ErrNotExist},
		{"/out", ".", fs.ErrNotExist},
		{"/out/rings", ".", fs.ErrNotExist},
		{"/up/rings", ".", fs.ErrNotExist},
		{"/run/nixl", "out", files.ErrNotDir},
		{"/run/nixl", "back", files.ErrNotDir},
		{"/run/nixl", "..", fs.ErrInvalid},
		{"/run/nixl", "/etc", fs.ErrInvalid},
		{"/fifo", ".", files.ErrNotDir},
		{"/file", ".", files.ErrNotDir},
		{"/loop", ".", files.ErrNotDir},
		{"/run/nixl/agent", ".", files.ErrNotDir},
		{"/" + strings.Repeat("x/", 4096), ".", syscall.ENAMETOOLONG},
	} {
		f, err := OpenDir(p, h.proc, tt.dir, tt.name)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s, %s: %v; want %v", tt.dir, tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		if _, err := f.Lstat("agent"); err != nil {
			t.Errorf("%s, %s: %v", tt.dir, tt.name, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Magic links in /proc can lead outside the root, independent of their text.
func TestMagicLinksAreNotFollowed(t *testing.T) {
	pid := os.Getpid()
	s, err := readStat(filepath.Join("/proc", strconv.Itoa(pid)))
	must.OK(t, err)
	p := Process{PID: pid, Start: s.Start}
	for _, dir := range []string{"/proc/" + strconv.Itoa(pid) + "/root", "/proc/self/cwd", "/proc/self/root/tmp"} {
		if f, err := OpenDir(p, "", dir, "."); !errors.Is(err, files.ErrNotDir) {
			t.Errorf("%s: %v, %v", dir, f, err)
		}
	}
	f, err := OpenDir(p, "", "/proc", ".")
	must.OK(t, err)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenDirFailsAfterExit(t *testing.T) {
	h, p := hostile(t)
	reused := p
	reused.Start++
	if f, err := OpenDir(reused, h.proc, "/run/nixl", "."); !errors.Is(err, ErrExited) {
		t.Errorf("reused PID: %v, %v", f, err)
	}
	h.exit(100)
	if f, err := OpenDir(p, h.proc, "/run/nixl", "."); !errors.Is(err, ErrExited) {
		t.Errorf("%v, %v", f, err)
	}
}

// Only regular files below the root are checked.
func TestMappedFilesThatAreNotRingsAreIgnored(t *testing.T) {
	h, _ := hostile(t)
	size := 4096*16 + os.Getpagesize()
	var maps strings.Builder
	for _, path := range []string{"/fifo", "/run", "/out/x", "/proc/1/root/etc/passwd", "/none", "/loop", "/file", "/../../etc/passwd"} {
		maps.WriteString(h.mapping("", size)[:strings.IndexByte(h.mapping("", size), '/')] + h.root + path + "\n")
	}
	h.setProcess(task{pid: 100, maps: maps.String()})
	if found := h.scan(New(Config{Proc: h.proc}), 0); len(found) != 0 {
		t.Errorf("found = %+v", found)
	}
}

func TestNumberOfDirectoriesIsLimited(t *testing.T) {
	h := newHost(t)
	var maps strings.Builder
	for i := range 3 * maxDirs {
		maps.WriteString(h.ring("/rings/" + strconv.Itoa(i) + "/agent"))
	}
	for i := range 3 * maxDirs {
		maps.WriteString(h.mapping("/stores/"+strconv.Itoa(i)+"/nixl.1.a.0.mmap", 8192))
	}
	h.setProcess(task{pid: 100, maps: maps.String()})
	found := h.scan(New(Config{Proc: h.proc}), 0)
	if len(found) != 1 || len(found[0].Dirs) != maxDirs || len(found[0].Stores) != maxDirs {
		t.Errorf("found = %+v", found)
	}
}
