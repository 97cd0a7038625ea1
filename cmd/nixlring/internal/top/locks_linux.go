package top

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// inode tells a file from others, as the list of locks does.
type inode struct {
	major, minor uint64
	ino          uint64
}

// lockHolders says which of some files are locked, and by whom. A line of the
// list is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
//
// with the device in hexadecimal. The kernel leaves out processes of other PID
// namespaces.
func lockHolders(list string, paths []string) map[string]Lock {
	holders := make(map[string]Lock)
	pids := flocks(list)
	if len(pids) == 0 {
		return holders
	}
	names := make(map[int]string)
	for _, path := range paths {
		file, ok := inodeOf(path)
		if !ok {
			continue
		}
		pid, ok := pids[file]
		if !ok {
			continue
		}
		if _, known := names[pid]; !known {
			names[pid] = program(pid)
		}
		holders[path] = Lock{PID: pid, Name: names[pid]}
	}
	return holders
}

func flocks(list string) map[inode]int {
	f, err := os.Open(list)
	if err != nil {
		return nil
	}
	defer f.Close()
	pids := make(map[inode]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(field[4])
		if file, ok := parseInode(field[5]); ok && err == nil && pid > 0 {
			pids[file] = pid
		}
	}
	return pids
}

func parseInode(s string) (f inode, ok bool) {
	part := strings.Split(s, ":")
	if len(part) != 3 {
		return f, false
	}
	var err [3]error
	f.major, err[0] = strconv.ParseUint(part[0], 16, 32)
	f.minor, err[1] = strconv.ParseUint(part[1], 16, 32)
	f.ino, err[2] = strconv.ParseUint(part[2], 10, 64)
	return f, err == [3]error{}
}

func inodeOf(path string) (inode, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return inode{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	// The parts of a device number lie as makedev(3) puts them.
	dev := st.Dev
	return inode{
		major: dev>>8&0xfff | dev>>32&^uint64(0xfff),
		minor: dev&0xff | dev>>12&^uint64(0xff),
		ino:   st.Ino,
	}, true
}

// program is the name of a process, empty if it can't be told.
func program(pid int) string {
	link, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err == nil {
		return filepath.Base(strings.TrimSuffix(link, " (deleted)"))
	}
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
