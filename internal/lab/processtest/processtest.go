// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package processtest provides tests with a proc file system of simulated processes.
package processtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Host is a proc file system.
type Host struct {
	Proc string // path of the proc file system
	TB   testing.TB
}

// Process is a simulated process. Only PID is required.
type Process struct {
	PID        int
	Parent     int      // 1 if 0
	Start      uint64   // 100 times PID if 0
	Name       string   // of the program; agent if empty
	Title      string   // title, or arguments
	Namespace  string   // target of the ns/mnt link
	Executable string   // path; /usr/bin/python3 if empty
	Cgroup     string   // path
	Env        []string // NAME=value
	Maps       string   // path of a file that is mapped for writing
	Library    string   // path of a library that is mapped
	Mappings   string   // more mappings, as in /proc/PID/maps
	Mounts     string   // as in /proc/PID/mountinfo
	Root       string   // root directory; / if empty
}

// New returns a Host with only an init process.
func New(tb testing.TB) *Host {
	tb.Helper()
	h := &Host{Proc: tb.TempDir(), TB: tb}
	h.Start(Process{PID: 1, Namespace: "mnt:[1]"})
	must.OK(tb, os.Symlink("4194304", filepath.Join(h.Proc, "self")))
	return h
}

// Start adds a process, or replaces it.
func (h *Host) Start(p Process) {
	h.TB.Helper()
	dir := h.Path(p.PID)
	maps := p.Mappings
	if p.Maps != "" {
		maps += fmt.Sprintf("7f0000000000-7f0000001000 rw-s 00000000 00:01 99999999                   %s\n", p.Maps)
	}
	if p.Library != "" {
		maps += fmt.Sprintf("7f0000002000-7f0000003000 r-xp 00000000 00:01 99999998                   %s\n", p.Library)
	}
	name, start := cmp.Or(p.Name, "agent"), cmp.Or(p.Start, uint64(p.PID)*100)
	errs := []error{os.MkdirAll(filepath.Join(dir, "ns"), 0o750)}
	for name, text := range map[string]string{
		"stat":    fmt.Sprintf("%d (%s) S %d %s%d 0\n", p.PID, name, cmp.Or(p.Parent, 1), strings.Repeat("0 ", 17), start),
		"cmdline": p.Title + "\x00",
		"cgroup":  "0::" + cmp.Or(p.Cgroup, "/user.slice") + "\n",
		"statm":   fmt.Sprintf("%d 100 100 1 0 100 0\n", 4096+len(maps)),
		"environ": strings.Join(slices.Concat(p.Env, []string{""}), "\x00"),
		"maps":    maps, "mountinfo": p.Mounts,
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, to := range map[string]string{
		"ns/mnt": p.Namespace, "root": cmp.Or(p.Root, "/"), "exe": cmp.Or(p.Executable, "/usr/bin/python3"),
	} {
		_ = os.Remove(filepath.Join(dir, name)) // may not exist
		errs = append(errs, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.OK(h.TB, errors.Join(errs...))
}

// Path returns the path of a process's directory, or of a file in it.
func (h *Host) Path(pid int, name ...string) string {
	return filepath.Join(append([]string{h.Proc, fmt.Sprint(pid)}, name...)...)
}

// Exit removes a process.
func (h *Host) Exit(pid int) {
	h.TB.Helper()
	must.OK(h.TB, os.RemoveAll(h.Path(pid)))
}

// InPod returns the cgroup of a container in a pod.
func InPod(uid, container string) string {
	return fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope",
		strings.ReplaceAll(uid, "-", "_"), container)
}
