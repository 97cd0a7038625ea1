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
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// Host is a proc file system.
type Host struct {
	Proc string // path of the proc file system

	tb testing.TB
}

// Process is a simulated process. Only PID is required.
type Process struct {
	PID, NSPID int
	Namespace  string   // target of the ns/mnt link
	Executable string   // path; /usr/bin/python3 if empty
	Cgroup     string   // path
	Env        []string // NAME=value
	Maps       string   // path of a file that is mapped for writing
	Library    string   // path of a library that is mapped
	Mounts     string   // as in /proc/PID/mountinfo
	Root       string   // root directory; / if empty
}

// New returns a Host with only an init process.
func New(tb testing.TB) *Host {
	tb.Helper()
	h := &Host{Proc: tb.TempDir(), tb: tb}
	h.Start(Process{PID: 1, Namespace: "mnt:[1]"})
	must.OK(tb, os.Symlink("4194304", filepath.Join(h.Proc, "self")))
	return h
}

// Start adds a process.
func (h *Host) Start(p Process) {
	h.tb.Helper()
	dir := filepath.Join(h.Proc, fmt.Sprint(p.PID))
	maps := ""
	if p.Maps != "" {
		maps = fmt.Sprintf("7f0000000000-7f0000001000 rw-s 00000000 00:01 99999999                   %s\n", p.Maps)
	}
	if p.Library != "" {
		maps += fmt.Sprintf("7f0000002000-7f0000003000 r-xp 00000000 00:01 99999998                   %s\n", p.Library)
	}
	errs := []error{os.MkdirAll(filepath.Join(dir, "ns"), 0o750)}
	for name, text := range map[string]string{
		"stat":    fmt.Sprintf("%d (agent) S 1 %s%d 0\n", p.PID, strings.Repeat("0 ", 17), p.PID*100),
		"status":  fmt.Sprintf("Name:\tagent\nNSpid:\t%d\t%d\n", p.PID, max(p.NSPID, 1)),
		"cgroup":  "0::" + cmp.Or(p.Cgroup, "/user.slice") + "\n",
		"statm":   "4096 100 100 1 0 100 0\n",
		"environ": strings.Join(append(p.Env, ""), "\x00"),
		"maps":    maps, "mountinfo": p.Mounts,
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, to := range map[string]string{
		"ns/mnt": p.Namespace, "root": cmp.Or(p.Root, "/"), "cwd": "/", "exe": cmp.Or(p.Executable, "/usr/bin/python3"),
	} {
		errs = append(errs, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.OK(h.tb, errors.Join(errs...))
}

// Exit removes a process.
func (h *Host) Exit(pid int) {
	h.tb.Helper()
	must.OK(h.tb, os.RemoveAll(filepath.Join(h.Proc, fmt.Sprint(pid))))
}

// InPod returns the cgroup of a container in a pod.
func InPod(uid, container string) string {
	return fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope",
		strings.ReplaceAll(uid, "-", "_"), container)
}
