// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// of returns the process with a PID among some.
func of(list []Process, pid int) *Process {
	i := slices.IndexFunc(list, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// scanReal looks at the real processes of this machine. Those of other users may
// not be visible.
func scanReal(t *testing.T, s *Scanner, now time.Time) []Process {
	t.Helper()
	list, err := settled(s, now)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	return list
}

func TestRealProcesses(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	byEnv := child(t, "agent", "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir, "SECRET=1", "LOCAL_RANK=5")
	byRing := child(t, filepath.Join(dir, "agent"))
	neither := child(t, "agent", "NIXL_TELEMETRY_ENABLE=n")
	list := scanReal(t, New(Config{Env: []string{"LOCAL_RANK"}}), time.Now())
	for _, pid := range []int{byEnv, byRing} {
		p := of(list, pid)
		if p == nil {
			t.Errorf("process %d isn't found", pid)
			continue
		}
		if !slices.Equal(p.Dirs, []string{dir}) || p.Executable != filepath.Base(os.Args[0]) || p.NSPID == 0 || p.Start == 0 || p.MountNS == "" {
			t.Errorf("%+v", p)
		}
		f, err := OpenFolder(*p, "", dir, ".")
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := f.Lstat("agent"); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if p := of(list, byEnv); p != nil && (p.Env["LOCAL_RANK"] != "5" || len(p.Env) != 3) {
		t.Errorf("variables are %v", p.Env)
	}
	if of(list, neither) != nil || of(list, os.Getpid()) != nil {
		t.Error("a process that is no agent is found")
	}
}

// A shell that runs for a while is replaced by an agent.
func TestRealExec(t *testing.T) {
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c",
		`echo ready; read line; export NIXL_TELEMETRY_ENABLE=y; exec "$0"`, os.Args[0])
	cmd.Env = []string{childVariable + "=agent"}
	p := start(t, cmd)
	s, now := New(Config{}), time.Now()
	if of(scanReal(t, s, now), p.pid) != nil {
		t.Error("a shell is found")
	}
	p.next()
	if of(scanReal(t, s, now.Add(time.Second)), p.pid) == nil {
		t.Error("what the shell became isn't found")
	}
}

// A user without privileges finds their own processes, and is told that there are
// others.
func TestRealProcessesOfOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	child(t, "agent", "NIXL_TELEMETRY_ENABLE=y")
	const nobody = 65534
	// The directory of this program may be closed to others. This link isn't.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{childVariable + "=scan", "NIXL_TELEMETRY_ENABLE=y"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("can't run as another user: %v", err)
	}
	if got := string(out); got != "0 found, permission: true\n" {
		t.Error(got)
	}
}
