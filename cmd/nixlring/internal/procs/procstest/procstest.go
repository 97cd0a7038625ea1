// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package procstest creates mocks of /proc for tests.
package procstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// The target of /proc/self/ns/pid in the initial namespace and in a container.
const (
	Initial = "pid:[4026531836]"
	Inner   = "pid:[4026532561]"
)

// Process is a process that has a ring mapped.
type Process struct {
	PID      int
	Lock     bool // holds the ring's lock, so it is a consumer
	ReadOnly bool
	Hidden   bool // its mappings can't be read
}

// Make creates a mock of /proc in which processes have the file at path mapped, and returns
// its path.
func Make(t *testing.T, path, namespace string, list ...Process) string {
	t.Helper()
	root := t.TempDir()
	info, err := os.Lstat(path)
	must.OK(t, err)
	file := files.IDOf(info)
	device := files.Device(file.Dev)
	must.OK(t, os.MkdirAll(filepath.Join(root, "self", "ns"), 0o755))
	must.OK(t, os.Symlink(namespace, filepath.Join(root, "self", "ns", "pid")))
	var locks strings.Builder
	fmt.Fprintf(&locks, "1: POSIX  ADVISORY  READ 77 %s:%d 0 EOF\n", device, file.Ino)
	for _, p := range append(list, Process{PID: 9999}) {
		dir := filepath.Join(root, fmt.Sprint(p.PID))
		must.OK(t, os.Mkdir(dir, 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, "comm"), fmt.Appendf(nil, "prog%d\n", p.PID), 0o600))
		if p.Hidden {
			must.OK(t, os.Mkdir(filepath.Join(dir, "maps"), 0o755)) // reading it fails
			continue
		}
		perm, inode := "rw-s", file.Ino
		switch {
		case p.PID == 9999: // has another file mapped
			inode++
		case p.ReadOnly:
			perm = "r--s"
		}
		maps := fmt.Sprintf("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n"+
			"7f1c00000000-7f1c00011000 %s 00000000 %s %d %s\n7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n",
			perm, device, inode, path+map[bool]string{true: ".other"}[p.PID == 9999])
		must.OK(t, os.WriteFile(filepath.Join(dir, "maps"), []byte(maps), 0o600))
		must.OK(t, os.WriteFile(filepath.Join(dir, "stat"), fmt.Appendf(nil, "%d (prog) S 1 %s0\n", p.PID, strings.Repeat("0 ", 20)), 0o600))
		if p.Lock {
			fmt.Fprintf(&locks, "2: FLOCK  ADVISORY  WRITE %d %s:%d 0 EOF\n", p.PID, device, file.Ino)
		}
	}
	locks.WriteString("3: FLOCK\n4: -> FLOCK  ADVISORY  WRITE x y z\n5: FLOCK  ADVISORY  WRITE 1 zz:1 0 EOF\n")
	must.OK(t, os.WriteFile(filepath.Join(root, "locks"), []byte(locks.String()), 0o600))
	return root
}

// Flood puts a MiB of other locks in front of those in a mock of /proc.
func Flood(t *testing.T, root string) {
	t.Helper()
	path := filepath.Join(root, "locks")
	locks, err := os.ReadFile(path)
	must.OK(t, err)
	const other = "1: FLOCK  ADVISORY  WRITE 666 00:01:1 0 EOF\n"
	must.OK(t, os.WriteFile(path, append([]byte(strings.Repeat(other, 1<<20/len(other)+1)), locks...), 0o600))
}
