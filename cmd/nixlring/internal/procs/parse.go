package procs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

// target is a ring that mappings are looked for of.
type target struct {
	File
	users *Users
}

// mappings adds a process to the users of the rings that it has mapped. Some file
// systems have another device in this list than stat(2) returns; there the path
// decides.
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
