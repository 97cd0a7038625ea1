// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Process is a process that uses a ring.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	Writes  int    `json:"writable_mappings"`
}

func (p Process) String() string { return fmt.Sprintf("process %d (%s)", p.PID, p.Command) }

// Users are the processes that use a ring.
type Users struct {
	Mapped   []Process   `json:"mapped_by,omitempty"`
	Consumer *Process    `json:"consumer,omitempty"`           // the process that holds the consumer lock
	Unseen   string      `json:"processes_not_seen,omitempty"` // why other processes may use the ring, too
	Running  diagnose.Up `json:"agent_running"`
}

// initialPIDNamespace is the target of /proc/PID/ns/pid in the namespace that contains all
// others; PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
const initialPIDNamespace = "pid:[4026531836]"

// Everywhere reports whether procfs shows the processes of all namespaces.
func Everywhere(proc string) bool {
	namespace, _ := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	return namespace == initialPIDNamespace
}

// FindUsers finds the processes that use a ring. It reads the mappings of all processes, which takes up to
// a second on a large machine. proc is the mount point of procfs.
func FindUsers(proc, path string) Users {
	var u Users
	info, err := os.Lstat(path)
	pids, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	holders, all := LockHolders(filepath.Join(proc, "locks"))
	if err != nil || !all {
		u.Unseen = "the processes that use it can't be found: the list of locks can't be read, or is too long"
		u.Running = u.running(OpenForWriting(path))
		return u
	}
	ring := newMapped(proc, path, info)
	everywhere := Everywhere(proc)
	var hidden []Process
	for _, dir := range pids {
		p := Process{Command: Program(dir)}
		p.PID, _ = strconv.Atoi(filepath.Base(dir))
		mapped, writes, err := ring.in(dir)
		p.Writes = writes
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // the process has exited
			continue
		case err != nil && (p.PID != 1 || !everywhere): // in some sandboxes, not even root can inspect the machine's init, which isn't an agent
			hidden = append(hidden, p)
		case mapped:
			u.Mapped = append(u.Mapped, p)
		}
		if p.PID == holders[ring.file] {
			u.Consumer = &p
		}
	}
	switch {
	case !everywhere:
		u.Unseen = "processes outside of this PID namespace can't be inspected; run this outside of any container"
	case len(hidden) > 0:
		u.Unseen = fmt.Sprintf("%v can't be inspected; run this as root, with all capabilities", hidden[0])
	}
	u.Running = u.running(OpenForWriting(path))
	return u
}

// Writers returns the processes that write to the ring, except for a consumer, which has it mapped for
// writing once: agents, and readers that don't hold the consumer lock.
func (u *Users) Writers() (list []Process) {
	for _, p := range u.Mapped {
		if p.Writes > 1 || p.Writes == 1 && (u.Consumer == nil || p.PID != u.Consumer.PID) {
			list = append(list, p)
		}
	}
	return list
}

// running returns whether the ring's agent is running.
func (u *Users) running(inUse diagnose.Up) diagnose.Up {
	switch {
	case inUse == diagnose.No:
		return diagnose.No
	case len(u.Writers()) > 0:
		return diagnose.Yes
	case u.Unseen == "" && (u.Consumer != nil || inUse == diagnose.Unknown):
		return diagnose.No
	default: // a process that can't be inspected may have it open
		return diagnose.Unknown
	}
}

// OpenForWriting asks the kernel whether a process, an agent or a consumer, has a ring open for writing. It is
// unknown without permission, on overlayfs, and if the file system doesn't support leases.
func OpenForWriting(path string) diagnose.Up {
	f, err := files.Open(path, os.O_RDONLY)
	if err != nil {
		return diagnose.Unknown
	}
	defer f.Close()
	return answer(files.LeaseRefused(f, false))
}

// mapped finds a file in the mappings of processes.
type mapped struct {
	path, file, device, inode, mounts string
}

func newMapped(proc, path string, info fs.FileInfo) mapped {
	id := files.IDOf(info)
	m := mapped{file: LockKey(id), device: Device(id.Dev), inode: strconv.FormatUint(id.Ino, 10)}
	m.path, _ = filepath.Abs(path)
	m.mounts, _ = os.Readlink(filepath.Join(proc, "self", "ns", "mnt"))
	return m
}

// in returns whether a process has the file mapped as shared memory, and how often for writing. A line of its
// mappings is
//
//	7f0a4c000000-7f0a4c011000 rw-s 00000000 fe:00 5678   /run/nixl/agent
//
// On some file systems, such as Btrfs and overlayfs, the device or the inode differ from those of stat(2), so
// the same path in the same mount namespace is also the file.
func (m *mapped) in(dir string) (found bool, writes int, err error) {
	f, err := os.Open(filepath.Join(dir, "maps"))
	if err != nil {
		return false, 0, err
	}
	defer f.Close()
	mounts, _ := os.Readlink(filepath.Join(dir, "ns", "mnt"))
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || !strings.HasSuffix(field[1], "s") {
			continue
		}
		same := field[3] == m.device && field[4] == m.inode
		if !same && (mounts != m.mounts || !strings.HasSuffix(lines.Text(), " "+m.path)) {
			continue
		}
		found = true
		if field[1][1] == 'w' && strings.Trim(field[2], "0") == "" { // begins with the header
			writes++
		}
	}
	return found, writes, lines.Err()
}

// Program returns the name of a process's program, or "" if it is unknown. dir is the process's directory in procfs.
func Program(dir string) string {
	if link, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
		return filepath.Base(strings.TrimSuffix(link, " (deleted)"))
	}
	name, _ := os.ReadFile(filepath.Join(dir, "comm"))
	return strings.TrimSpace(string(name))
}
