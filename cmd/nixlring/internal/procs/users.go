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
	Writable bool   `json:"writable"` // its mapping, or its lock
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

// Users is which processes use a ring.
type Users struct {
	Mapped   []Process // have it mapped, by number
	Consumer *Process  // of this project: it holds the ring's lock; nil if none is known
	Hidden   int       // processes that may have it mapped too, but can't be looked at

	all bool // no other process has it mapped
}

// FS is where the kernel lists processes: /proc, or a test's folder.
type FS string

// Users returns who uses the rings at some paths. It looks at every process
// once, which takes up to a second on a large machine. Paths that have no file
// are left out.
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
		// If even the consumer's mapping isn't found, nobody else's would be.
		u.all = all && (u.Consumer == nil || u.maps(u.Consumer.PID))
	}
	return found
}

// Consumers returns which processes hold the locks of the rings at some paths.
// That takes no look at all processes.
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

// Writers returns the processes that have the ring mapped for writing, without
// the consumer: agents, and readers that aren't of this project.
func (u *Users) Writers() (list []Process) {
	for _, q := range u.Mapped {
		if q.Writable && (u.Consumer == nil || q.PID != u.Consumer.PID) {
			list = append(list, q)
		}
	}
	return list
}

// Deserted reports whether certainly no process but the consumer writes to the
// ring.
func (u *Users) Deserted() bool { return u.all && len(u.Writers()) == 0 }

// walk looks at all processes. all is whether these are all there are.
func (p FS) walk(files map[uint64][]target) (hidden int, all bool) {
	// The number of the namespace that all processes are seen from:
	// PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
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
