// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"syscall"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// OpenDir opens the directory name below dir in the root of a process. dir is one of the
// process's [Process.Dirs]. name must be a local path; "." is dir
// itself. Links in dir are resolved within the root, and no part of name may be a link.
//
// The process can block OpenDir indefinitely. The directory stays open if the process
// exits, and keeps the process's mount namespace and file system in use.
func OpenDir(p Process, proc, dir, name string) (*files.Dir, error) {
	root, err := files.OpenDir(pidDir(proc, p.PID)+"/root", ".")
	if err != nil {
		return nil, exitedOr(err)
	}
	defer root.Close()
	// If the process still has the PID, the root that was opened before is its own.
	if !Runs(proc, p) {
		return nil, fmt.Errorf("open %s of process %d: %w", path.Join(dir, name), p.PID, ErrExited)
	}
	f, err := root.OpenBelow(dir)
	if err != nil || name == "." {
		return f, err
	}
	defer f.Close()
	return f.Open(name)
}

// Runs reports whether a process is still running.
func Runs(proc string, p Process) bool {
	b, err := readOnce(pidDir(proc, p.PID) + "/stat")
	_, start, ok := parseStat(b)
	return err == nil && ok && start == p.Start
}

// readOnce reads a file of at most 4 KiB with 3 system calls; os.ReadFile takes 8, and there may be
// thousands of processes.
func readOnce(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 4<<10)
	n, err := syscall.Read(fd, b)
	return b[:max(n, 0)], errors.Join(err, syscall.Close(fd))
}

func pidDir(proc string, pid int) string {
	return cmp.Or(proc, "/proc") + "/" + strconv.Itoa(pid)
}

// exitedOr returns ErrExited if err means that the process has exited, and err otherwise.
func exitedOr(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return ErrExited
	}
	return err
}
