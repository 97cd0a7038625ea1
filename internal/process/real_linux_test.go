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

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// withPID returns the process with a PID, or nil.
func withPID(list []Process, pid int) *Process {
	i := slices.IndexFunc(list, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// scanReal scans the processes of this machine. Processes of other users may be
// inaccessible.
func scanReal(t *testing.T, s *Scanner, now time.Time) []Process {
	t.Helper()
	list, err := scanUntilDone(s, now)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	return list
}

func TestRealAgentsAreFound(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	byEnv := child(t, "agent", "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir, "SECRET=1", "LOCAL_RANK=5")
	byRing := child(t, filepath.Join(dir, "agent"))
	neither := child(t, "agent", "NIXL_TELEMETRY_ENABLE=n")
	list := scanReal(t, New(Config{Env: []string{"LOCAL_RANK"}}), time.Now())
	for _, pid := range []int{byEnv, byRing} {
		p := withPID(list, pid)
		if p == nil {
			t.Errorf("process %d wasn't found", pid)
			continue
		}
		if !slices.Equal(p.Dirs, []string{dir}) || p.Executable != filepath.Base(os.Args[0]) || p.NSPID == 0 || p.Start == 0 || p.MountNS == "" {
			t.Errorf("%+v", p)
		}
		f, err := OpenDir(*p, "", dir, ".")
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
	if p := withPID(list, byEnv); p != nil && (p.Env["LOCAL_RANK"] != "5" || len(p.Env) != 3) {
		t.Errorf("variables are %v", p.Env)
	}
	if withPID(list, neither) != nil || withPID(list, os.Getpid()) != nil {
		t.Error("a process that isn't an agent was found")
	}
}

// A shell executes an agent.
func TestRealExecIsDetected(t *testing.T) {
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c",
		`echo ready; read line; export NIXL_TELEMETRY_ENABLE=y; exec "$0"`, os.Args[0])
	cmd.Env = []string{childVariable + "=agent"}
	p := start(t, cmd)
	s, now := New(Config{}), time.Now()
	if withPID(scanReal(t, s, now), p.pid) != nil {
		t.Error("the shell was found")
	}
	p.next()
	if withPID(scanReal(t, s, now.Add(time.Second)), p.pid) == nil {
		t.Error("the agent wasn't found")
	}
}

// The child scans as an unprivileged user.
func TestMissingPermissionIsReported(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	child(t, "agent", "NIXL_TELEMETRY_ENABLE=y")
	const nobody = 65534
	// Another user may have no access to the directory of the test binary, but can
	// execute it through this link.
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
