// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// Process is a process that uses a ring.
type Process struct {
	PID      int    `json:"pid"`
	Command  string `json:"command,omitempty"`
	Writable bool   `json:"writable"` // has the ring mapped for writing, or holds its lock
}

// Users holds the processes that use a ring.
type Users struct {
	Mapped   []Process // processes that have it mapped, sorted by PID
	Consumer *Process  // the process that holds the ring's lock; nil if unknown
	Unlisted bool      // a process may hold the lock although Consumer is nil; see ManyLocks
	Hidden   []Process // processes that can't be inspected

	agents  []int // PIDs of the processes that write to it, except for a consumer
	outside bool  // there may be processes in other PID namespaces
	all     bool  // no other process has it mapped
}

// ManyLocks says why the process that holds a ring's lock is unknown.
const ManyLocks = "the process that consumes a ring can't be found: /proc/locks can't be read, or is longer than 1 MiB, " +
	"because some process holds too many file locks"

// FS is the path of /proc, or of a mock.
type FS string

// Users returns the users of the rings at some paths. It reads the mappings of every
// process once, which takes up to a second on a large machine. Missing files are skipped.
func (p FS) Users(paths ...string) map[string]*Users {
	found := make(map[string]*Users, len(paths))
	ids, files := identify(paths)
	if len(ids) == 0 {
		return found
	}
	all, err := process.FindUsers(context.Background(), string(p), files)
	outside := err != nil || !all.Everywhere
	hidden := make([]Process, len(all.Hidden))
	for i, h := range all.Hidden {
		hidden[i] = Process{PID: h.PID, Command: p.command(h.PID)}
	}
	for path, id := range ids {
		u := &Users{Hidden: hidden, outside: outside}
		for _, one := range all.Of[id] {
			u.Mapped = append(u.Mapped, Process{PID: one.PID, Command: p.command(one.PID), Writable: one.Writable > 0})
		}
		for _, one := range all.Agents(id) {
			u.agents = append(u.agents, one.PID)
		}
		u.all = len(hidden) == 0 && !outside
		if pid := all.Consumers[id]; pid > 0 {
			u.Consumer = &Process{PID: pid, Command: p.command(pid), Writable: true}
			u.all = u.all && all.Has(id, pid) // if its mapping isn't found, others may be missing, too
		} else {
			u.Unlisted = !all.AllConsumers
		}
		found[path] = u
	}
	return found
}

// Consumers returns the processes that hold the locks of the rings at some paths, and whether
// these are all; see [ManyLocks]. It doesn't read the mappings of processes.
func (p FS) Consumers(paths ...string) (found map[string]Process, all bool) {
	found = make(map[string]Process)
	ids, files := identify(paths)
	consumers, all := process.Consumers(string(p), files)
	for path, id := range ids {
		if pid := consumers[id]; pid > 0 {
			found[path] = Process{PID: pid, Command: p.command(pid), Writable: true}
		}
	}
	return found, all
}

// identify returns the files at some paths, and their absolute paths.
func identify(paths []string) (ids map[string]files.ID, found map[files.ID]string) {
	ids, found = make(map[string]files.ID, len(paths)), make(map[files.ID]string, len(paths))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		id := files.IDOf(info)
		ids[path] = id
		if abs, err := filepath.Abs(path); err == nil {
			found[id] = abs
		}
	}
	return ids, found
}

// Writers returns the processes that have the ring mapped for writing, except the consumer:
// agents, and readers that don't hold the ring's lock.
func (u *Users) Writers() (list []Process) {
	for _, q := range u.Mapped {
		if slices.Contains(u.agents, q.PID) {
			list = append(list, q)
		}
	}
	return list
}

// Deserted reports whether it is certain that only the consumer, if any, has the ring
// mapped for writing.
func (u *Users) Deserted() bool { return u.all && len(u.Writers()) == 0 }

// Unseen says which processes can't be inspected or told apart, so that it is unknown whether an agent is running. It
// is empty if all can.
func (u *Users) Unseen() string {
	switch n := len(u.Hidden); {
	case u.outside:
		return "processes outside of this PID namespace can't be inspected; run this outside of any container"
	case u.Unlisted:
		return ManyLocks
	case n == 0:
		return ""
	default:
		first := strings.TrimSuffix(fmt.Sprintf("%d (%s)", u.Hidden[0].PID, u.Hidden[0].Command), " ()")
		who := "process " + first
		if n > 1 {
			who = fmt.Sprintf("%d processes, such as %s,", n, first)
		}
		return who + " can't be inspected; run this as root, with all capabilities"
	}
}

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
