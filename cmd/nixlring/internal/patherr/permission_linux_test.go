// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package patherr

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// A command that would never see a ring fails at once, and a page doesn't claim that no agent is running.
func TestDirectoryRejectsDirectoriesThatCanNotBeRead(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o311))) // its owner can't list it either
	t.Cleanup(func() { must.OK(t, os.Chmod(dir, 0o700)) })
	got := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function, because it has lost the privileges of root
		if os.Getuid() == 0 {
			_ = syscall.Setfsuid(65534)
		}
		got <- Directory(Rings, dir)
	}()
	if err := <-got; !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

func TestOwnerIsThatOfTheSystem(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	must.OK(t, err)
	if uid, gid := Owner(info); uid != uint32(os.Getuid()) || gid != uint32(os.Getgid()) {
		t.Errorf("owner is %d, %d", uid, gid)
	}
}
