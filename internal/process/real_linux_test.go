// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestRealAgentsAreFound(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	byEnv := child(t, "agent", "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir, "SECRET=1", "LOCAL_RANK=5")
	byRing := child(t, filepath.Join(dir, "agent"))
	neither := child(t, "agent", "NIXL_TELEMETRY_ENABLE=n")
	list, err := scanUntilDone(New(Config{Env: []string{"LOCAL_RANK"}}), time.Now())
	if err != nil && !errors.Is(err, fs.ErrPermission) { // some processes may be of other users
		t.Error(err)
	}
	found := make(map[int]Process)
	for _, p := range list {
		found[p.PID] = p
	}
	info, err := os.Stat(filepath.Join(dir, "agent"))
	must.OK(t, err)
	for pid, rings := range map[int][]File{byEnv: nil, byRing: {{files.IDOf(info), filepath.Join(dir, "agent")}}} {
		p := found[pid]
		got := Process{Dirs: p.Dirs, Files: p.Files, Executable: p.Executable}
		if diff := cmp.Diff(Process{Dirs: []string{dir}, Files: rings, Executable: filepath.Base(os.Args[0])}, got); diff != "" {
			t.Errorf("process (-want +got):\n%s", diff)
		}
		if p.Start == 0 || p.MountNS == "" {
			t.Errorf("%+v", p)
		}
		f, err := OpenDir(p, "", dir, ".")
		must.OK(t, err)
		_, err = f.Lstat("agent")
		must.OK(t, errors.Join(err, f.Close()))
	}
	if env := found[byEnv].Env; env["LOCAL_RANK"] != "5" || len(env) != 3 {
		t.Errorf("variables are %v", env)
	}
	if found[neither].PID != 0 || found[os.Getpid()].PID != 0 {
		t.Error("a process that isn't an agent was found")
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
