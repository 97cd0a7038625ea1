// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Process is a process that uses a ring.
type Process struct {
	PID      int    `json:"pid"`
	Command  string `json:"command,omitempty"`
	Writable bool   `json:"writable"` // has the ring mapped for writing, or holds its lock
}

// File identifies a file.
type File struct {
	Device string // major:minor in hexadecimal
	Inode  uint64
	Path   string // absolute
}

func absolute(path string) (File, error) {
	abs, err := filepath.Abs(path)
	return File{Path: abs}, err
}

// Users holds the processes that use a ring.
type Users struct {
	Mapped   []Process // processes that have it mapped, sorted by PID
	Consumer *Process  // the process that holds the ring's lock; nil if unknown
	Hidden   int       // number of processes that can't be inspected

	all bool // no other process has it mapped
}

// FS is the path of /proc, or of a mock.
type FS string

// Users returns the users of the rings at some paths. It reads the mappings of every
// process once, which takes up to a second on a large machine. Missing files are skipped.
func (p FS) Users(paths ...string) map[string]*Users {
	found := make(map[string]*Users, len(paths))
	files := make(map[uint64][]target, len(paths)) // by inode
	locks := p.locks()
	for _, path := range paths {
		f, err := FileOf(path)
		if err != nil {
			continue
		}
		u := &Users{}
		if pid := locks[f.lock()]; pid > 0 {
			u.Consumer = &Process{PID: pid, Command: p.command(pid), Writable: true}
		}
		found[path] = u
		files[f.Inode] = append(files[f.Inode], target{f, u})
	}
	if len(found) == 0 {
		return found
	}
	hidden, all := p.walk(files)
	for _, u := range found {
		u.Hidden = hidden
		// If the consumer's mapping isn't found, others may be missing, too.
		u.all = all && (u.Consumer == nil || u.maps(u.Consumer.PID))
	}
	return found
}

// Consumers returns the processes that hold the locks of the rings at some paths. It doesn't
// read the mappings of processes.
func (p FS) Consumers(paths ...string) map[string]Process {
	found := make(map[string]Process)
	locks := p.locks()
	if len(locks) == 0 {
		return found
	}
	for _, path := range paths {
		if f, err := FileOf(path); err == nil && locks[f.lock()] > 0 {
			pid := locks[f.lock()]
			found[path] = Process{PID: pid, Command: p.command(pid), Writable: true}
		}
	}
	return found
}

// maps reports whether a process has the ring mapped for writing.
func (u *Users) maps(pid int) bool {
	return slices.ContainsFunc(u.Mapped, func(q Process) bool { return q.PID == pid && q.Writable })
}

// Writers returns the processes that have the ring mapped for writing, except the consumer:
// agents, and readers that don't hold the ring's lock.
func (u *Users) Writers() (list []Process) {
	for _, q := range u.Mapped {
		if q.Writable && (u.Consumer == nil || q.PID != u.Consumer.PID) {
			list = append(list, q)
		}
	}
	return list
}

// Deserted reports whether it is certain that only the consumer, if any, has the ring
// mapped for writing.
func (u *Users) Deserted() bool { return u.all && len(u.Writers()) == 0 }

// walk reads the mappings of all visible processes. all reports whether every process was
// visible.
func (p FS) walk(files map[uint64][]target) (hidden int, all bool) {
	// The initial PID namespace: PROC_PID_INIT_INO in the kernel's
	// include/linux/proc_ns.h.
	const initial = "pid:[4026531836]"
	namespace, err := os.Readlink(filepath.Join(string(p), "self", "ns", "pid"))
	all = err == nil && namespace == initial
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := p.mappings(pid, files); err != nil && !exited(err) {
			hidden++
		}
	}
	for _, list := range files {
		for _, t := range list {
			slices.SortFunc(t.users.Mapped, func(a, b Process) int { return a.PID - b.PID })
		}
	}
	return hidden, all && hidden == 0
}
