package procs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// target is a ring that mappings are looked for of.
type target struct {
	File
	users *Users
}

// mappings adds a process to the users of the rings that it has mapped. A line of
// its list is
//
//	7f1c00000000-7f1c00011000 rw-s 00000000 fe:01 1234   /tmp/agent
//
// with the device in hexadecimal. Some file systems have another device here than
// stat(2) returns; there the path decides.
func (p FS) mappings(pid int, files map[uint64][]target) error {
	f, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), "maps"))
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 5 {
			continue
		}
		inode, err := strconv.ParseUint(field[4], 10, 64)
		if err != nil || inode == 0 {
			continue
		}
		for _, t := range files[inode] {
			if field[3] == t.Device || strings.Contains(lines.Text(), " "+t.Path) {
				p.add(t.users, pid, strings.HasPrefix(field[1], "rw"))
			}
		}
	}
	return lines.Err()
}

func (p FS) add(u *Users, pid int, writable bool) {
	i := slices.IndexFunc(u.Mapped, func(q Process) bool { return q.PID == pid })
	if i < 0 {
		u.Mapped = append(u.Mapped, Process{PID: pid, Command: p.command(pid), Writable: writable})
	} else {
		u.Mapped[i].Writable = u.Mapped[i].Writable || writable
	}
}

// lock returns the file as the list of locks has it.
func (f File) lock() string { return fmt.Sprintf("%s:%d", f.Device, f.Inode) }

// locks returns which process holds the lock of each file. It is empty if the
// list doesn't say: it hides processes of other PID namespaces. A line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
func (p FS) locks() map[string]int {
	f, err := os.Open(filepath.Join(string(p), "locks"))
	if err != nil {
		return nil
	}
	defer f.Close()
	pids := make(map[string]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" {
			continue
		}
		if pid, err := strconv.Atoi(field[4]); err == nil && pid > 0 {
			pids[field[5]] = pid
		}
	}
	return pids
}

// command returns the name of a process's program, or "".
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
