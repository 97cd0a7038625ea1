// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/flock"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// target is a ring whose mappings are searched.
type target struct {
	File
	users *Users
}

// mappings adds a process to the users of the rings that it has mapped. On some file
// systems, the device in this list differs from that of stat(2); then the path decides.
func (p FS) mappings(pid int, files map[uint64][]target) error {
	f, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), "maps"))
	if err != nil {
		return err
	}
	defer f.Close()
	return process.ReadMaps(f, func(m process.Mapping) bool {
		for _, t := range files[m.Inode] {
			if string(m.Dev) == t.Device || string(m.Path) == t.Path {
				p.add(t.users, pid, m.Write)
			}
		}
		return true
	})
}

func (p FS) add(u *Users, pid int, writable bool) {
	i := slices.IndexFunc(u.Mapped, func(q Process) bool { return q.PID == pid })
	if i < 0 {
		u.Mapped = append(u.Mapped, Process{PID: pid, Command: p.command(pid), Writable: writable})
	} else {
		u.Mapped[i].Writable = u.Mapped[i].Writable || writable
	}
}

// lock returns the file's key in the list of locks.
func (f File) lock() string { return flock.Key(f.Device, f.Inode) }

// locks returns the process that holds the lock of each file.
func (p FS) locks() map[string]int { return flock.Holders(filepath.Join(string(p), "locks")) }

// command returns the name of a process's program, or "" if it is unknown.
func (p FS) command(pid int) string {
	dir := filepath.Join(string(p), strconv.Itoa(pid))
	if link, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
		return filepath.Base(strings.TrimSuffix(link, " (deleted)"))
	}
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
