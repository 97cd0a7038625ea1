// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// initialPIDNamespace is the target of /proc/PID/ns/pid in the namespace that contains all
// others; PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
const initialPIDNamespace = "pid:[4026531836]"

// FindUsers finds the processes that have files mapped as shared memory, in one pass over
// all processes, until ctx ends. proc is the mount point of the proc file system. paths maps
// each file to its absolute path; a file with the path of a mapping is found even if the
// mapping shows another device, and in this mount namespace, even with another inode. Without
// a path, only the device and the inode count.
func FindUsers(ctx context.Context, proc string, paths map[files.ID]string) (Users, error) {
	u := Users{Of: make(map[files.ID][]User)}
	namespace, _ := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	u.Everywhere = namespace == initialPIDNamespace
	pids, err := List(proc)
	if err != nil {
		return u, fmt.Errorf("find the users of rings: %w", err)
	}
	byInode, byPath := make(map[uint64][]files.ID, len(paths)), make(map[string]files.ID, len(paths))
	for id, path := range paths {
		byInode[id.Ino] = append(byInode[id.Ino], id)
		byPath[path] = id
	}
	mounts, _ := os.Readlink(filepath.Join(proc, "self", "ns", "mnt"))
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return u, err
		}
		found := make(map[files.ID]int)
		for m, err := range SharedMappings(proc, pid) {
			if err != nil {
				u.hide(proc, pid)
			}
			for _, id := range byInode[m.Inode] {
				if mapped, _ := m.ID(); mapped != id && (paths[id] == "" || paths[id] != string(m.Path)) {
					continue
				}
				found[id] += writable(m)
			}
			// On overlayfs, old kernels show the inode of the layer below.
			if id, ok := byPath[string(m.Path)]; ok && m.Inode != id.Ino && sameMounts(proc, pid, mounts) {
				found[id] += writable(m)
			}
		}
		u.add(proc, pid, found)
	}
	u.Consumers, u.AllConsumers = Consumers(proc, paths)
	return u, nil
}

// writable returns 1 if a process can write to the start of the file, and 0 otherwise.
func writable(m Mapping) int {
	if m.Write && m.Offset == 0 {
		return 1
	}
	return 0
}

// sameMounts reports whether a process is in the given mount namespace.
func sameMounts(proc string, pid int, namespace string) bool {
	own, err := os.Readlink(filepath.Join(proc, strconv.Itoa(pid), "ns", "mnt"))
	return err == nil && own == namespace
}

// add adds a process that has files mapped.
func (u *Users) add(proc string, pid int, found map[files.ID]int) {
	if len(found) == 0 {
		return
	}
	stat, err := readStat(filepath.Join(proc, strconv.Itoa(pid)))
	if err != nil {
		return // the process has exited
	}
	for id, writable := range found {
		u.Of[id] = append(u.Of[id], User{PID: pid, Parent: stat.Parent, Start: stat.Start, Writable: writable})
	}
}

// hide adds a process whose mappings can't be read.
func (u *Users) hide(proc string, pid int) {
	if pid == 1 && u.Everywhere {
		return // the machine's init isn't an agent, and in some sandboxes, not even root can inspect it
	}
	h := Hidden{PID: pid}
	if info, err := os.Stat(filepath.Join(proc, strconv.Itoa(pid))); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			h.UID = st.Uid
		}
	}
	u.Hidden = append(u.Hidden, h)
}

// List returns the PIDs of all visible processes, in order.
func List(proc string) (pids []int, err error) {
	found, err := list(proc, make([]byte, 32<<10), nil)
	for _, e := range found {
		pids = append(pids, e.pid)
	}
	slices.Sort(pids)
	return pids, err
}

// SharedMappings returns the files that a process has mapped as shared memory. It returns
// an error if the mappings can't be read, unless the process has exited. The search for the
// users of rings and the search for the process of a ring both read mappings here.
func SharedMappings(proc string, pid int) iter.Seq2[Mapping, error] {
	return func(yield func(Mapping, error) bool) {
		f, err := os.Open(filepath.Join(proc, strconv.Itoa(pid), "maps"))
		more := true
		if err == nil {
			err = ReadMaps(f, func(m Mapping) bool {
				more = !m.Shared || yield(m, nil)
				return more
			})
			_ = f.Close() // it was only read
		}
		if err != nil && more && !errors.Is(exitedOr(err), ErrExited) {
			yield(Mapping{}, err)
		}
	}
}
