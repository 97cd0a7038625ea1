// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// host is a simulated proc file system with the root directory of its processes.
type host struct {
	t          *testing.T
	proc, root string
	now        time.Time
}

func newHost(t *testing.T) *host {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	return &host{t: t, proc: t.TempDir(), root: root, now: time.Unix(1000, 0)}
}

// task describes a simulated process.
type task struct {
	pid, parent   int
	start         uint64
	name, exe     string
	environ, maps string
	cgroup        string
	mountinfo     string
	namespace     string
	cwd           string
}

const (
	enabled = "NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_DIR=/run/nixl\x00"
	inAPod  = "0::/kubepods/pod2d51509a-fcf0-41cc-b535-57cfeeaf73d1/0853fad78812e955b92d871d8d597d9bc598e34320c9edbfab0a73eacf150145\n"
)

// setProcess starts a process, or changes it.
func (h *host) setProcess(p task) {
	h.t.Helper()
	defaults := task{parent: 1, start: 500, name: "python3", exe: "/usr/bin/python3", cgroup: "0::/\n", namespace: "mnt:[4026531841]", cwd: h.root}
	for field, value := range map[*string]string{
		&p.name: defaults.name, &p.exe: defaults.exe, &p.cgroup: defaults.cgroup, &p.namespace: defaults.namespace, &p.cwd: defaults.cwd,
	} {
		if *field == "" {
			*field = value
		}
	}
	if p.start == 0 {
		p.start = defaults.start
	}
	if p.parent == 0 {
		p.parent = defaults.parent
	}
	h.mkdir(h.path(p.pid, "ns"))
	for name, contents := range map[string]string{
		"stat":    fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 8192 100 0\n", p.pid, p.name, p.parent, p.start),
		"status":  fmt.Sprintf("Name:\t%s\nNSpid:\t%d\t7\n", p.name, p.pid),
		"statm":   fmt.Sprintf("%d 100 100 1 0 100 0\n", len(p.maps)),
		"environ": p.environ, "maps": p.maps, "cgroup": p.cgroup,
		"mountinfo": p.mountinfo,
	} {
		h.write(h.path(p.pid, name), contents)
	}
	for name, target := range map[string]string{"exe": p.exe, "root": h.root, "cwd": p.cwd, "ns/mnt": p.namespace} {
		h.link(target, h.path(p.pid, name))
	}
}

// exit removes a process. It moves the directory, so that the next process with the same
// PID has another inode.
func (h *host) exit(pid int) (dir string) {
	h.t.Helper()
	dir = filepath.Join(h.t.TempDir(), "exited")
	must.OK(h.t, os.Rename(h.path(pid), dir))
	return dir
}

func (h *host) path(pid int, name ...string) string {
	return filepath.Join(append([]string{h.proc, strconv.Itoa(pid)}, name...)...)
}

func (h *host) mkdir(dir string) {
	h.t.Helper()
	must.OK(h.t, os.MkdirAll(dir, 0o750))
}

func (h *host) write(path, contents string) {
	h.t.Helper()
	must.OK(h.t, os.WriteFile(path, []byte(contents), 0o600))
}

func (h *host) link(target, path string) {
	h.t.Helper()
	_ = os.Remove(path) // may not exist
	must.OK(h.t, os.Symlink(target, path))
}

// ring creates a ring in the root and returns the line of its mapping.
func (h *host) ring(path string) (mapping string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(filepath.Join(h.root, path)))
	w, err := ringbuf.Create(filepath.Join(h.root, path), ringbuf.V4, 4096)
	must.OK(h.t, err)
	h.t.Cleanup(func() { _ = w.Close() })
	return h.mapping(path, 4096*16+os.Getpagesize())
}

// mapping returns the line of a file in the root that is mapped for writing.
// Newlines in path are escaped as the kernel does.
func (h *host) mapping(path string, size int) string {
	return fmt.Sprintf("7f0000000000-%x rw-s 00000000 00:1a 5678      %s\n", 0x7f0000000000+int64(size),
		strings.ReplaceAll(filepath.Join(h.root, path), "\n", `\012`))
}

// scanUntilDone scans until only the examinations of the given processes are running. On
// a busy machine, other examinations may exceed the timeout, too.
func scanUntilDone(s *Scanner, now time.Time, hanging ...int) ([]Process, error) {
	for {
		list, err := s.Scan(now, nil)
		i := slices.IndexFunc(s.hanging, func(x *examination) bool { return !slices.Contains(hanging, x.record.pid) })
		if i < 0 {
			return list, err
		}
		<-s.hanging[i].done
	}
}

// scan scans after some time.
func (h *host) scan(s *Scanner, after time.Duration) []Process {
	h.t.Helper()
	h.now = h.now.Add(after)
	list, err := scanUntilDone(s, h.now)
	if err != nil {
		h.t.Error(err)
	}
	return list
}

// pids scans after some time and returns the PIDs of the agents.
func (h *host) pids(s *Scanner, after time.Duration) (list []int) {
	h.t.Helper()
	for _, p := range h.scan(s, after) {
		list = append(list, p.PID)
	}
	return list
}
