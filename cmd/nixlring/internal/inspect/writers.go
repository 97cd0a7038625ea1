package inspect

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Writers are the processes that have a ring mapped for writing.
type Writers struct {
	Others   []Process // agents, and readers that aren't of this project
	Consumer *Process  // of this project, nil if none is known
	All      bool      // there are no more than these
}

// FindWriters looks who writes to rings. It goes through all processes, once.
func FindWriters(proc string, paths []string) map[string]*Writers {
	p := procFS(proc)
	found := make(map[string]*Writers, len(paths))
	byFile := make(map[string]*Writers, len(paths))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		id, _, _ := identity(info, path)
		w := &Writers{Consumer: p.locker(id)}
		found[path], byFile[id.device+" "+strconv.FormatUint(id.inode, 10)] = w, w
	}
	seen := make(map[*Writers]bool) // of which the consumer's mapping was found
	all := p.each(func(pid int, file string) {
		w := byFile[file]
		switch {
		case w == nil:
		case w.Consumer != nil && w.Consumer.PID == pid:
			seen[w] = true
		default:
			w.Others = append(w.Others, Process{PID: pid, Command: p.command(pid), Writable: true})
		}
	})
	for _, w := range found {
		// Where not even the consumer's mapping is found, as on a file system
		// that gives mappings another device, nobody else's would be.
		w.All = all && (w.Consumer == nil || seen[w])
	}
	return found
}

// each calls fn for each file that a process has mapped for writing, by device
// and inode. It says whether that is all processes there are.
func (p procFS) each(fn func(pid int, file string)) (all bool) {
	// The number of the namespace that all processes are seen from:
	// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
	const initial = "pid:[4026531836]"
	namespace, err := os.Readlink(filepath.Join(string(p), "self", "ns", "pid"))
	all = err == nil && namespace == initial
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		err = p.written(pid, func(file string) { fn(pid, file) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !ended(err) {
			all = false
		}
	}
	return all
}

// written calls fn once for each file that a process has mapped for writing;
// [procFS.maps] has the form of the list.
func (p procFS) written(pid int, fn func(file string)) error {
	f, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), "maps"))
	if err != nil {
		return err
	}
	defer f.Close()
	told := make(map[string]bool)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		const least = 5
		if len(field) < least || !strings.Contains(field[1], "w") || !strings.HasSuffix(field[1], "s") {
			continue
		}
		if file := field[3] + " " + field[4]; !told[file] {
			told[file] = true
			fn(file)
		}
	}
	return lines.Err()
}
