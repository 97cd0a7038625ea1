// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"path/filepath"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// User is a process that has a file mapped as shared memory.
type User struct {
	PID, Parent int
	Start       uint64 // start time, in clock ticks since boot
	Writable    int    // number of mappings for writing that begin at the start of the file
}

// Users are the processes that use files.
type Users struct {
	// Of has the processes that have a file mapped. The device of a mapping differs from
	// that of stat(2) on some file systems, such as Btrfs. Processes that use such a file
	// are only found by its path.
	Of map[files.ID][]User
	// Consumers has the process that holds the lock of a file. Unless AllConsumers is true,
	// processes may be missing, and are among the agents.
	Consumers    map[files.ID]int
	AllConsumers bool
	// Hidden are the processes whose mappings can't be read.
	Hidden []Hidden
	// Everywhere reports whether all processes of the machine are visible.
	Everywhere bool
}

// Hidden is a process whose mappings can't be read.
type Hidden struct {
	PID int
	UID uint32
}

// Agents returns the processes that write to a file, except for its consumer, which has one
// mapping for writing.
func (u *Users) Agents(id files.ID) (agents []User) {
	for _, one := range u.Of[id] {
		if one.Writable > 1 || one.Writable == 1 && one.PID != u.Consumers[id] {
			agents = append(agents, one)
		}
	}
	return agents
}

// Has reports whether a process has a file mapped.
func (u *Users) Has(id files.ID, pid int) bool {
	return slices.ContainsFunc(u.Of[id], func(one User) bool { return one.PID == pid })
}

// Hides reports whether the mappings of a process of a user can't be read.
func (u *Users) Hides(uid uint32) bool {
	return slices.ContainsFunc(u.Hidden, func(h Hidden) bool { return h.UID == uid })
}

// Consumers returns the processes that hold the locks of files, and whether these are all: the
// kernel's list of locks can be too long to read. proc is the mount point of the proc file system.
func Consumers(proc string, paths map[files.ID]string) (found map[files.ID]int, all bool) {
	found = make(map[files.ID]int)
	holders, all := files.Holders(filepath.Join(proc, "locks"))
	for id := range paths {
		if pid := holders[id.Key()]; pid > 0 {
			found[id] = pid
		}
	}
	return found, all
}

// ID returns the mapped file. It reports false if the device is invalid.
func (m Mapping) ID() (id files.ID, ok bool) {
	dev, ok := device(m.Dev)
	return files.ID{Dev: dev, Ino: m.Inode}, ok
}

// device is the reverse of [files.Device] for the device number of a mapping.
func device(dev []byte) (n uint64, ok bool) {
	var parts [2]uint64
	at := 0
	for _, c := range dev {
		switch {
		case c == ':' && at == 0:
			at = 1
		case c >= '0' && c <= '9':
			parts[at] = parts[at]<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			parts[at] = parts[at]<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	major, minor := parts[0], parts[1]
	return major&0xfff<<8 | major&^uint64(0xfff)<<32 | minor&0xff | minor&^uint64(0xff)<<12, at == 1
}
