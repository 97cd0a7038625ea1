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
	wanted map[string]int // see Config.variables
	filter filter

	pid    int
	size   string  // size of the mappings, as in statm
	before Process // result of an earlier examination, but with the current pod and container
	intact bool    // the environment in it is known
}

// result is the output of an examination.
type result struct {
	err        error
	process    Process
	usesNIXL   bool
	awaitsRing bool // the process has libnixl.so mapped, but no ring or store is known
	intact     bool // the environment is known
	mapped     mapped
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
	p := &a.process
	p.PID, p.Pod, p.Container = q.pid, q.before.Pod, q.before.Container
	stat, err := q.identify(root, p)
	if err != nil {
		return a, err
	}
	e, err := q.environ(root, stat)
	if err != nil {
		return a, err
	}
	p.Env, p.Attributes, a.intact = e.env, e.attributes, e.intact
	rootPath, err := root.Readlink("root")
	if err != nil {
		return a, err
	}
	env := p.env()
	if env.WritesRing() {
		p.Dirs = addAbsolute(nil, root, rootPath, env.Dir())
	}
	if store := env.StoreDir(); store != "" {
		p.Stores = addAbsolute(nil, root, rootPath, store)
	}
	if err := q.readMappings(root, rootPath, &a); err != nil {
		return a, err
	}
	for _, dir := range a.mapped.dirs {
		p.Dirs = addDir(p.Dirs, dir)
	}
	for _, dir := range a.mapped.stores {
		p.Stores = addDir(p.Stores, dir)
	}
	known := len(p.Dirs) > 0 || len(p.Stores) > 0
	a.usesNIXL = a.mapped.library || known
	a.awaitsRing = a.mapped.library && !known
	if a.usesNIXL {
		err = q.readNamespaces(root, rootPath, p)
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
	if !ok || q.before.Start != 0 && stat.Start != q.before.Start {
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
	if q.intact {
		return environment{q.before.Env, q.before.Attributes, true}, nil
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
	var found usage
	if err := ReadMaps(f, func(m Mapping) bool { found.add(m, rootPath); return true }); err != nil {
		return err
	}
	a.mapped = mapped{size: q.size, library: found.library, stores: found.stores}
	a.process.Mapped = found.files
	for _, file := range found.files {
		dir := path.Dir(file.Path)
		switch {
		case slices.Contains(a.mapped.dirs, dir):
		case q.isRing(a.process, file.Path):
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
	if p.Container != "" {
		p.MountNS += " " + p.Container
	}
	if p.Pod != "" {
		mounts, _ := readFile(root, "mountinfo", maxMountinfo) // the name is optional
		p.ContainerName = ParseMountinfo(mounts, p.Pod)
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
