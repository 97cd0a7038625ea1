// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// ErrExited means that a process has exited. Its PID may have been reused.
var ErrExited = errors.New("process has exited")

// OpenDir opens the directory name below dir in the root of a process. dir is one of the
// process's [Process.Dirs] or [Process.Stores]. name must be a local path; "." is dir
// itself. Links in dir are resolved within the root, and no part of name may be a link.
//
// The process can block OpenDir indefinitely. The directory stays open if the process
// exits, and keeps the process's mount namespace and file system in use.
func OpenDir(p Process, proc, dir, name string) (*files.Dir, error) {
	pid := filepath.Join(cmp.Or(proc, "/proc"), strconv.Itoa(p.PID))
	root, err := files.OpenDir(filepath.Join(pid, "root"), ".")
	if err != nil {
		return nil, exitedOr(err)
	}
	defer root.Close()
	// If the process still has the PID, the root that was opened before is its own.
	if !Runs(proc, p) {
		return nil, fmt.Errorf("open %s of process %d: %w", path.Join(dir, name), p.PID, ErrExited)
	}
	if name == "." {
		return root.OpenBelow(dir)
	}
	f, err := root.OpenBelow(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Open(name)
}

// Runs reports whether a process is still running.
func Runs(proc string, p Process) bool {
	s, err := readStat(filepath.Join(cmp.Or(proc, "/proc"), strconv.Itoa(p.PID)))
	return err == nil && s.Start == p.Start
}

func readStat(pid string) (Stat, error) {
	// This is called often, and needs fewer system calls than an os.File.
	fd, err := syscall.Open(pid+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Stat{}, exitedOr(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	var b [1 << 10]byte
	n, err := syscall.Read(fd, b[:])
	if err != nil {
		return Stat{}, exitedOr(err)
	}
	s, ok := ParseStat(b[:n])
	if !ok {
		return Stat{}, ErrExited
	}
	return s, nil
}

// exitedOr returns ErrExited if err means that the process has exited, and err otherwise.
func exitedOr(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return ErrExited
	}
	return err
}
