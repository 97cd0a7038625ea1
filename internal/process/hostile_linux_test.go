// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// block makes a file of a process block its readers.
func (h *host) block(pid int, name string) {
	h.t.Helper()
	path := h.Path(pid, name)
	must.OK(h.t, os.Remove(path))
	must.OK(h.t, syscall.Mkfifo(path, 0o600))
}

// hangingIn returns a process of a group.
func hangingIn(group string) *record {
	r := new(record)
	r.Group = group
	return r
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

// A process can block readers of its environment and of its mappings. Until the next scan, its
// container isn't fully seen; then the scan reports it.
func TestHangingProcessDelaysOnlyOneScan(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"environ", "maps"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.setProcess(task{PID: 100, Env: enabled})
			h.setProcess(task{PID: 101, Cgroup: inAPod})
			h.setProcess(task{PID: 102, Env: enabled})
			h.block(101, name)
			s, began := New(Config{Proc: h.Proc}), time.Now()
			_, err := s.Scan(h.now, false)
			if err != nil || s.Seen(id).After(began) {
				t.Errorf("container was seen: error = %v", err)
			}
			for pages := range 2 { // these take no time
				h.now = h.now.Add(time.Minute)
				h.write(h.Path(101, "statm"), strconv.Itoa(pages))
				found, err := scanUntilDone(s, h.now, 101)
				got := fmt.Sprintf("%d found, error %v, seen %v, %d running", len(found), errors.Is(err, errHangs), !s.Seen(id).Before(began), len(s.hanging))
				if want := "2 found, error true, seen true, 1 running"; got != want {
					t.Errorf("%s, want %s; error = %v", got, want, err)
				}
			}
			contents := strings.Join(enabled, "\x00")
			if name == "maps" {
				contents = h.ring("/run/agent")
			}
			h.unblock(h.Path(101, name), contents)
			<-s.hanging[0].done
			if got := h.pids(s, 0); !slices.Equal(got, []int{100, 101, 102}) {
				t.Errorf("PIDs = %v", got)
			}
		})
	}
}

// However many processes of a container hang, those of others are found.
func TestHangingProcessesOfOneContainerAreLimited(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const first, last = 100, 109
	for pid := first; pid <= last; pid++ {
		h.setProcess(task{PID: pid, Cgroup: inAPod + "/" + strconv.Itoa(pid)})
		h.block(pid, "environ")
	}
	h.setProcess(task{PID: 200, Env: enabled})
	s := New(Config{Proc: h.Proc})
	for scan := range maxHangingGroup + 3 {
		found, _ := s.Scan(h.now, false)
		if scan > 0 && len(found) != 1 || len(s.hanging) > maxHangingGroup {
			t.Errorf("scan %d: found = %+v, %d processes hang", scan, found, len(s.hanging))
		}
	}
	waiting := slices.Clone(s.hanging)
	if len(waiting) != maxHangingGroup {
		t.Errorf("%d processes hang, want %d", len(waiting), maxHangingGroup)
	}
	for pid := first; pid <= last; pid++ {
		if !slices.ContainsFunc(waiting, func(r *record) bool { return r.PID == pid }) {
			h.exit(pid)
		}
	}
	for _, r := range waiting {
		h.unblock(h.Path(r.PID, "environ"), "")
		<-r.done
	}
	if found := h.scan(s, 0); len(found) != 1 || len(s.hanging) > 0 {
		t.Errorf("found = %+v, %d processes hang", found, len(s.hanging))
	}
}

// Many containers may hang at the same time. Their other processes aren't examined, which is reported.
func TestHangingContainersDontDelayOthers(t *testing.T) {
	h := newHost(t)
	h.Exit(1)
	h.setProcess(task{PID: 100, Env: enabled})
	h.setProcess(task{PID: 101, Env: enabled, Cgroup: "/hangs/7"})
	s := New(Config{Proc: h.Proc})
	for i := range 32 {
		s.hanging = append(s.hanging, hangingIn(fmt.Sprintf("0::/hangs/%d\n", i/4)))
	}
	found, err := s.Scan(h.now, false)
	if len(found) != 1 || found[0].PID != 100 {
		t.Errorf("found = %+v", found)
	}
	if !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "33 processes") {
		t.Errorf("error = %v", err)
	}
	for i := len(s.hanging); i < maxHanging; i++ {
		s.hanging = append(s.hanging, hangingIn(strconv.Itoa(i)))
	}
	if s.mayExamine("other") {
		t.Error("any number of processes may hang")
	}
}

// The process has exited when the examination ends. What is known of the next one with its PID stays.
func TestResultOfHangingProcessIsIgnoredAfterPIDReuse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.setProcess(task{PID: 100, Start: 1})
	h.block(100, "environ")
	s := New(Config{Proc: h.Proc})
	if _, err := s.Scan(h.now, false); err != nil {
		t.Fatal(err)
	}
	r := s.hanging[0]
	exited := h.exit(100)
	h.setProcess(task{PID: 100, Start: 2, Env: enabled, Executable: "/usr/bin/next"})
	if found, _ := scanUntilDone(s, h.now.Add(time.Second), 100); len(found) != 1 {
		t.Errorf("found = %+v", found)
	}
	h.setProcess(task{PID: 100, Start: 2, Env: overwritten, Executable: "/usr/bin/next"})
	must.OK(t, os.Remove(filepath.Join(exited, "maps")))
	h.unblock(filepath.Join(exited, "environ"), "")
	<-r.done
	if found := h.scan(s, time.Minute); len(found) != 1 || found[0].Start != 2 || !found[0].Own {
		t.Errorf("found = %+v", found)
	}
}

// A container or user with many processes, or with processes that hang, can't delay others.
func TestContainersTakeTurns(t *testing.T) {
	h := newHost(t)
	h.Exit(1)
	h.setProcess(task{PID: 10, Cgroup: "/hangs"})
	for pid := range 3 {
		h.setProcess(task{PID: 100 + pid, Cgroup: inAPod})
		h.setProcess(task{PID: 200 + pid, Cgroup: "/other"})
	}
	for pid, cgroup := range []string{"user-1/a.scope", "user-1/b.scope", "user-2/a.scope"} {
		h.setProcess(task{PID: 300 + pid, Cgroup: "/user.slice/" + cgroup})
	}
	s := New(Config{Proc: h.Proc})
	must.OK(t, s.list(h.now, false))
	s.hanging = []*record{hangingIn("0::/hangs\n")}
	var order []int
	for _, r := range s.due(h.now, false) {
		order = append(order, r.PID)
	}
	if want := []int{100, 200, 300, 302, 101, 201, 301, 102, 202, 10}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

// A scan that is cut short has seen the containers whose processes were all examined. Another
// scan that is cut short has seen the others.
func TestScanThatIsCutShortHasNotSeenTheRest(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: for others, a missing process 1 means that processes are hidden")
	}
	h := newHost(t)
	h.Exit(1)
	h.setProcess(task{PID: 100, Env: enabled})
	h.setProcess(task{PID: 101, Env: enabled, Cgroup: inAPod})
	h.setProcess(task{PID: 102, Env: enabled, Cgroup: inAPod})
	s := New(Config{Proc: h.Proc})
	s.maxScan = 1 // only one process is examined
	var began []time.Time
	for range 6 {
		h.now = h.now.Add(time.Second)
		began = append(began, time.Now())
		_, err := s.Scan(h.now, true)
		must.OK(t, err)
		if s.Seen("0::/user.slice\n").Before(began[0]) || s.Seen(id).IsZero() != (len(began) < 3) {
			t.Errorf("scan %d: the host was seen at %v, the container at %v", len(began), s.Seen("0::/user.slice\n"), s.Seen(id))
		}
		if first := slices.MinFunc([]time.Time{s.records[101].examined, s.records[102].examined}, time.Time.Compare); !s.Seen(id).Equal(first) {
			t.Errorf("scan %d: the container was seen at %v, but one of its processes at %v", len(began), s.Seen(id), first)
		}
	}
	if seen := s.Seen(id); seen.Before(began[3]) || seen.After(began[5]) {
		t.Errorf("seen at %v, scans began at %v", seen, began)
	}
	s.maxScan = maxScan
	h.scan(s, time.Minute)
	if s.Seen(id).Before(began[5]) {
		t.Error("not seen by a complete scan")
	}
}

// hostile creates a container's root with links and special files. Some of the links lead
// outside the root.
func hostile(t *testing.T) (h *host, p Process) {
	t.Helper()
	h = newHost(t)
	h.ring("/run/nixl/agent")
	must.OK(t, os.MkdirAll(filepath.Join(h.root, "proc/1"), 0o750))
	for link, target := range map[string]string{
		"var-run": "/run", "out": t.TempDir(), "run/nixl/back": "/run", "proc/1/root": "/proc/self/root", "loop": "/loop",
	} {
		must.OK(t, os.Symlink(target, filepath.Join(h.root, link)))
	}
	must.OK(t, syscall.Mkfifo(filepath.Join(h.root, "fifo"), 0o600))
	h.write(filepath.Join(h.root, "file"), "")
	h.setProcess(task{PID: 100, Env: enabled})
	return h, Process{PID: 100, Start: 10000}
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
		{"/../../run/nixl", ".", nil},
		{"/var-run/nixl", ".", nil}, // in most images, /var/run is a link to /run
		{"/out", ".", fs.ErrNotExist},
		{"/none", "nixl", fs.ErrNotExist},
		{"/run/nixl", "back", files.ErrNotDir},
		{"/run/nixl", "..", fs.ErrInvalid},
		{"/" + strings.Repeat("x/", 4096), ".", syscall.ENAMETOOLONG},
	} {
		f, err := OpenDir(p, h.Proc, tt.dir, tt.name)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s, %s: %v; want %v", tt.dir, tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		_, err = f.Lstat("agent")
		must.OK(t, errors.Join(err, f.Close()))
	}
}

// Magic links in /proc can lead outside the root, independent of their text.
func TestMagicLinksAreNotFollowed(t *testing.T) {
	pid := os.Getpid()
	b, err := os.ReadFile("/proc/self/stat")
	must.OK(t, err)
	_, start, _ := parseStat(b)
	p := Process{PID: pid, Start: start}
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
	if f, err := OpenDir(reused, h.Proc, "/run/nixl", "."); !errors.Is(err, ErrExited) {
		t.Errorf("reused PID: %v, %v", f, err)
	}
	h.exit(100)
	if f, err := OpenDir(p, h.Proc, "/run/nixl", "."); !errors.Is(err, ErrExited) {
		t.Errorf("%v, %v", f, err)
	}
}

// Only regular files below the root are checked.
func TestMappedFilesThatAreNotRingsAreIgnored(t *testing.T) {
	h, _ := hostile(t)
	var maps strings.Builder
	for _, path := range []string{"/fifo", "/run", "/out/x", "/proc/1/root/etc/passwd", "/none", "/loop", "/file", "/../../etc/passwd"} {
		maps.WriteString(h.mapping(path))
	}
	h.setProcess(task{PID: 100, Mappings: maps.String()})
	if found := h.scan(New(Config{Proc: h.Proc}), 0); len(found) != 0 {
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
		maps.WriteString(h.mapping("/stores/" + strconv.Itoa(i) + "/nixl.1.a.0.mmap"))
	}
	h.setProcess(task{PID: 100, Mappings: maps.String()})
	if found := h.scan(New(Config{Proc: h.Proc}), 0); len(found) != 1 || len(found[0].Dirs) != maxDirs {
		t.Errorf("found = %+v", found)
	}
}
