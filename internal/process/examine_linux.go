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
	// maxFile limits how many bytes of a small file are read.
	maxFile = 16 << 10
	// maxAncestors limits the search for an ancestor with an intact environment.
	maxAncestors = 8
)

// request is the input of an examination.
type request struct {
	proc   string
	pid    int
	pod    string         // UID of the process's pod; "" if there is none
	wanted map[string]int // see Config.variables
	filter filter
	size   string      // size of the mappings, as in statm; "" to skip reading them
	start  uint64      // expected start time of the process; 0 if unknown
	env    environment // from an earlier examination
}

// result is the output of an examination.
type result struct {
	err        error
	process    Process
	usesNIXL   bool
	awaitsRing bool // the process has libnixl.so mapped, but no ring or store is known
	intact     bool // the environment is known
	mapped     mapped
	read       int // bytes of mappings
}

// mapped describes the mappings of a process.
type mapped struct {
	size         string // total size, as in statm; "" if they must be read again
	library      bool   // libnixl.so is mapped
	dirs, stores []string
}

// examine examines a process.
func (q request) examine() result {
	a, err := q.readProcess()
	if err != nil {
		return result{err: exitedOr(err)}
	}
	return a
}

// readProcess reads everything relative to one open directory of /proc, which belongs
// to the same process even if the PID is reused.
func (q request) readProcess() (a result, err error) {
	root, err := os.OpenRoot(filepath.Join(q.proc, strconv.Itoa(q.pid)))
	if err != nil {
		return a, err
	}
	defer root.Close()
	a.process.PID = q.pid
	stat, err := q.identify(root, &a.process)
	if err != nil {
		return a, err
	}
	e, err := q.environ(root, stat)
	if err != nil {
		return a, err
	}
	a.process.Env, a.process.Attributes, a.intact = e.env, e.attributes, e.intact
	rootPath, err := root.Readlink("root")
	if err != nil {
		return a, err
	}
	env := a.process.env()
	if env.WritesRing() {
		a.process.Dirs = addAbsolute(nil, root, rootPath, env.Dir())
	}
	if store := env.StoreDir(); store != "" {
		a.process.Stores = addAbsolute(nil, root, rootPath, store)
	}
	if q.size != "" {
		if err := q.readMappings(root, rootPath, &a); err != nil {
			return a, err
		}
	}
	for _, dir := range a.mapped.dirs {
		a.process.Dirs = addDir(a.process.Dirs, dir)
	}
	for _, dir := range a.mapped.stores {
		a.process.Stores = addDir(a.process.Stores, dir)
	}
	known := len(a.process.Dirs) > 0 || len(a.process.Stores) > 0
	a.usesNIXL = a.mapped.library || known
	a.awaitsRing = a.mapped.library && !known
	if a.usesNIXL {
		err = q.readNamespaces(root, rootPath, &a.process)
	}
	return a, err
}

// identify sets the start time and the executable of a process.
func (q request) identify(root *os.Root, p *Process) (Stat, error) {
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

// environ returns the environment of a process. If the process has overwritten it,
// environ returns the one from an earlier examination, or else that of the nearest
// ancestor in the same mount namespace that has an intact environment, because a child
// usually inherits it.
func (q request) environ(root *os.Root, stat Stat) (environment, error) {
	e, err := q.readEnviron(root)
	if e.intact || err != nil {
		return e, err
	}
	if q.env.intact {
		return q.env, nil
	}
	namespace, err := root.Readlink("ns/mnt")
	if err != nil {
		return environment{}, err
	}
	for range maxAncestors {
		e, stat = q.ancestor(stat.Parent, namespace)
		if e.intact || stat.Parent == 0 {
			break
		}
	}
	e.intact = false
	return e, nil
}

// ancestor returns the environment of a process if it is in the given mount namespace.
func (q request) ancestor(pid int, namespace string) (environment, Stat) {
	root, err := os.OpenRoot(filepath.Join(q.proc, strconv.Itoa(pid)))
	if err != nil {
		return environment{}, Stat{}
	}
	defer root.Close()
	b, err1 := readFile(root, "stat", maxFile)
	there, err2 := root.Readlink("ns/mnt")
	stat, ok := ParseStat(b)
	if err := errors.Join(err1, err2); err != nil || !ok || there != namespace {
		return environment{}, Stat{}
	}
	e, err := q.readEnviron(root)
	if err != nil {
		return environment{}, Stat{}
	}
	return e, stat
}

func (q request) readEnviron(root *os.Root) (environment, error) {
	f, err := root.Open("environ")
	if err != nil {
		return environment{}, err
	}
	defer f.Close()
	env, intact, err := readEnviron(f, q.wanted)
	return newEnvironment(env, intact, q.filter), err
}

// readMappings reads the mappings of a process.
func (q request) readMappings(root *os.Root, rootPath string, a *result) error {
	f, err := root.Open("maps")
	if err != nil {
		return err
	}
	defer f.Close()
	counted := &counter{r: f}
	var found usage
	err = ReadMaps(counted, func(m Mapping) bool { found.add(m, rootPath); return true })
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
			a.mapped.size = "" // the file may become a ring later
		}
	}
	return nil
}

// isRing reports whether a file below the root of a process is a ring.
func (q request) isRing(p Process, file string) bool {
	f, err := OpenDir(p, q.proc, path.Dir(file), ".")
	if err != nil {
		return false
	}
	defer f.Close()
	ring, err := f.OpenFile(path.Base(file), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer ring.Close()
	_, err = ringbuf.PeekFile(ring)
	return err == nil || errors.Is(err, ringbuf.ErrUnknownVersion)
}

// readNamespaces sets the fields of a process that describe its namespaces.
func (q request) readNamespaces(root *os.Root, rootPath string, p *Process) error {
	status, err := readFile(root, "status", maxFile)
	if err != nil {
		return err
	}
	namespace, err := root.Readlink("ns/mnt")
	p.NSPID, p.MountNS = nsPID(status), namespace+" "+rootPath
	if q.pod != "" {
		mounts, _ := readFile(root, "mountinfo", maxMountinfo) // the name is optional
		p.ContainerName = ParseMountinfo(mounts, q.pod)
	}
	return err
}

// addAbsolute adds the directory from a variable. A relative path is relative to the
// working directory, provided that the process hasn't changed it since.
func addAbsolute(list []string, root *os.Root, rootPath, dir string) []string {
	if !path.IsAbs(dir) {
		wd, err := root.Readlink("cwd")
		if err != nil {
			return list
		}
		wd, ok := below(rootPath, wd)
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
