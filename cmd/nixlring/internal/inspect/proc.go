package inspect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a process that has something to do with a ring.
type Process struct {
	PID      int    `json:"pid"`
	Command  string `json:"command,omitempty"`
	Writable bool   `json:"writable"` // its mapping, or its lock
}

// fileID tells a file from others as the lists of /proc do.
type fileID struct {
	device string // major:minor in hexadecimal
	inode  uint64
	path   string // absolute
}

// procFS is where the kernel tells of processes: /proc, or a test's folder.
type procFS string

// mappers are the processes that have a file mapped, by number. hidden is how
// many processes couldn't be looked at, as they are of other users.
func (p procFS) mappers(id fileID) (list []Process, hidden int) {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		mapped, writable, err := p.maps(pid, id)
		switch {
		case errors.Is(err, fs.ErrPermission):
			hidden++
		case err == nil && mapped: // any other error: it has ended meanwhile
			list = append(list, Process{PID: pid, Command: p.command(pid), Writable: writable})
		}
	}
	return list, hidden
}

// maps says whether a process has a file mapped. A line is
//
//	7f1c00000000-7f1c00011000 rw-s 00000000 fe:01 1234   /tmp/agent
//
// with the device in hexadecimal and the inode in decimal. Some file systems
// give another device here than stat does; the path has to do then.
func (p procFS) maps(pid int, id fileID) (mapped, writable bool, err error) {
	f, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), "maps"))
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	inode := []byte(strconv.FormatUint(id.inode, 10))
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := bytes.Fields(lines.Bytes())
		const least = 5
		if len(field) < least || !bytes.Equal(field[4], inode) {
			continue
		}
		if string(field[3]) != id.device && !bytes.Contains(lines.Bytes(), []byte(id.path)) {
			continue
		}
		mapped = true
		writable = writable || bytes.HasPrefix(field[1], []byte("rw"))
	}
	return mapped, writable, lines.Err()
}

func (p procFS) command(pid int) string {
	b, err := os.ReadFile(filepath.Join(string(p), strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// locker is the process that holds a file's lock, nil if there is none or the
// list doesn't say: it hides processes of other PID namespaces. A line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
func (p procFS) locker(id fileID) *Process {
	b, err := os.ReadFile(filepath.Join(string(p), "locks"))
	if err != nil {
		return nil
	}
	file := fmt.Sprintf("%s:%d", id.device, id.inode)
	for line := range strings.Lines(string(b)) {
		field := strings.Fields(line)
		const least = 6
		if len(field) < least || field[1] != "FLOCK" || field[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(field[4]); err == nil && pid > 0 {
			return &Process{PID: pid, Command: p.command(pid), Writable: true}
		}
	}
	return nil
}
