// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// maxFile limits the small files of a process.
	maxFile = 16 << 10
	// maxAncestors limits how many ancestors are asked for their environment.
	maxAncestors = 8
)

// question is what an examination is to find out.
type question struct {
	proc   string
	pid    int
	wanted map[string]bool // variables
	size   string          // of the mappings, as statm has it; "" if they aren't to be read
	start  uint64          // when the process started; 0 if that isn't known
	env    map[string]string
	intact bool // env is known
}

// answer is what an examination has found out.
type answer struct {
	err     error
	process Process
	uses    bool // NIXL
	waits   bool // it has libnixl.so, and neither a ring nor a store is known
	intact  bool // its environment is known
	mapped  mapped
	read    int // bytes of mappings
}

// mapped is what the mappings of a process say.
type mapped struct {
	size         string // of all of them, as statm has it; "" if they must be read again
	library      bool   // libnixl.so
	dirs, stores []string
}

// examine examines a process. Everything is read relative to one open directory,
// which stays that of one process.
func (q question) examine() (a answer) {
	dir := filepath.Join(q.proc, strconv.Itoa(q.pid))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return answer{err: exitedOr(err)}
	}
	defer root.Close()
	a.process.PID = q.pid
	stat, err := q.identify(root, &a.process)
	if err != nil {
		return answer{err: exitedOr(err)}
	}
	if a.process.Env, a.intact, err = q.environ(root, stat); err != nil {
		return answer{err: exitedOr(err)}
	}
	at, err := root.Readlink("root")
	if err != nil {
		return answer{err: exitedOr(err)}
	}
	env := a.process.env()
	if env.WritesRing() {
		a.process.Dirs = addAbsolute(nil, root, at, env.Dir())
	}
	if store := env.StoreDir(); store != "" {
		a.process.Stores = addAbsolute(nil, root, at, store)
	}
	if q.size != "" {
		if err := q.readMappings(root, at, &a); err != nil {
			return answer{err: exitedOr(err)}
		}
	}
	for _, dir := range a.mapped.dirs {
		a.process.Dirs = addDir(a.process.Dirs, dir)
	}
	for _, dir := range a.mapped.stores {
		a.process.Stores = addDir(a.process.Stores, dir)
	}
	known := len(a.process.Dirs) > 0 || len(a.process.Stores) > 0
	a.uses = a.mapped.library || known
	a.waits = a.mapped.library && !known
	if a.uses {
		if err := place(root, at, &a.process); err != nil {
			return answer{err: exitedOr(err)}
		}
	}
	return a
}

// identify fills in what identifies a process.
func (q question) identify(root *os.Root, p *Process) (Stat, error) {
	b, err := readFile(root, "stat", maxFile)
	if err != nil {
		return Stat{}, err
	}
	stat, ok := ParseStat(b)
	if !ok || q.start != 0 && stat.Start != q.start {
		return Stat{}, ErrExited
	}
	exe, err := root.Readlink("exe")
	p.Start = stat.Start
	p.Executable = strings.ToValidUTF8(path.Base(strings.TrimSuffix(exe, " (deleted)")), "�")
	return stat, err
}

// environ returns the variables of a process. If it has overwritten them since
// they were read, they are still known. If it had done so before, those of its
// parent are close to its own, or those of the parent's parent, as long as these
// are in the same mount namespace.
func (q question) environ(root *os.Root, stat Stat) (env map[string]string, intact bool, err error) {
	env, intact, err = environ(root, q.wanted)
	if intact || err != nil {
		return env, intact, err
	}
	if q.intact {
		return q.env, true, nil
	}
	namespace, err := root.Readlink("ns/mnt")
	if err != nil {
		return nil, false, err
	}
	for range maxAncestors {
		env, intact, stat = q.ancestor(stat.Parent, namespace)
		if intact || stat.Parent == 0 {
			break
		}
	}
	return env, false, nil
}

// ancestor returns the variables of a process, if it is in a mount namespace.
func (q question) ancestor(pid int, namespace string) (env map[string]string, intact bool, stat Stat) {
	root, err := os.OpenRoot(filepath.Join(q.proc, strconv.Itoa(pid)))
	if err != nil {
		return nil, false, Stat{}
	}
	defer root.Close()
	b, err1 := readFile(root, "stat", maxFile)
	there, err2 := root.Readlink("ns/mnt")
	stat, ok := ParseStat(b)
	if err := errors.Join(err1, err2); err != nil || !ok || there != namespace {
		return nil, false, Stat{}
	}
	env, intact, err = environ(root, q.wanted)
	if err != nil {
		return nil, false, Stat{}
	}
	return env, intact, stat
}

func environ(root *os.Root, wanted map[string]bool) (map[string]string, bool, error) {
	f, err := root.Open("environ")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	return readEnviron(f, wanted)
}

// readMappings finds out what the mappings of a process say.
func (q question) readMappings(root *os.Root, at string, a *answer) error {
	f, err := root.Open("maps")
	if err != nil {
		return err
	}
	defer f.Close()
	counted := &counter{r: f}
	var found signs
	err = ReadMaps(counted, func(m Mapping) bool { found.look(m, at); return true })
	a.read = counted.n
	if err != nil {
		return err
	}
	a.mapped = mapped{size: q.size, library: found.library, stores: found.stores}
	for _, file := range found.rings {
		dir := path.Dir(file)
		switch {
		case slices.Contains(a.mapped.dirs, dir):
		case q.isRing(a.process, file):
			a.mapped.dirs = addDir(a.mapped.dirs, dir)
		default:
			a.mapped.size = "" // it may become one
		}
	}
	return nil
}

// isRing reports whether a file in the root of a process is a ring. Programs map
// other files, too.
func (q question) isRing(p Process, file string) bool {
	f, err := OpenFolder(p, q.proc, path.Dir(file), ".")
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = ringbuf.Peek(file, ringbuf.In(f))
	var unknown *ringbuf.UnknownVersionError
	return err == nil || errors.As(err, &unknown)
}

// place fills in where a process is.
func place(root *os.Root, at string, p *Process) error {
	status, err := readFile(root, "status", maxFile)
	if err != nil {
		return err
	}
	namespace, err := root.Readlink("ns/mnt")
	p.NSPID, p.MountNS = nsPID(status), namespace+" "+at
	return err
}

// addAbsolute adds a directory that a variable names. The process has created its
// ring relative to its working directory, unless it has changed that since.
func addAbsolute(list []string, root *os.Root, at, dir string) []string {
	if !path.IsAbs(dir) {
		wd, err := root.Readlink("cwd")
		if err != nil {
			return list
		}
		wd, ok := below(at, wd)
		if !ok {
			return list
		}
		dir = path.Join(wd, dir)
	}
	return addDir(list, path.Clean(dir))
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
