// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// maxFile limits how many bytes of a small file are read.
	maxFile = 16 << 10
	// maxAncestors limits the search for an ancestor with an intact environment.
	maxAncestors = 8
)

// state is what an examination finds.
type state struct {
	Process
	library bool // the process has libnixl.so mapped
}

func (s *state) usesNIXL() bool { return s.library || len(s.Dirs) > 0 }

// awaitsRing reports whether a process is likely to create a ring or a store somewhere.
func (s *state) awaitsRing() bool { return s.library && len(s.Dirs) == 0 }

// examine examines a process. before is the state after an earlier examination, but with the
// current pod and container. It reads everything relative to one open directory of /proc, which
// belongs to the same process even if the PID is reused.
func (c Config) examine(before state) (p state, err error) {
	defer func() { err = exitedOr(err) }()
	root, err := os.OpenRoot(pidDir(c.Proc, before.PID))
	if err != nil {
		return p, err
	}
	defer root.Close()
	b, err1 := readFile(root, "stat", maxFile)
	exe, err2 := root.Readlink("exe")
	rootPath, err3 := root.Readlink("root")
	if err := errors.Join(err1, err2, err3); err != nil {
		return p, err
	}
	parent, start, ok := parseStat(b)
	if !ok || before.Start != 0 && start != before.Start {
		return p, ErrExited
	}
	p.PID, p.Start = before.PID, start
	p.Pod, p.Container, p.Unit, p.Group = before.Pod, before.Container, before.Unit, before.Group
	p.Executable = strings.ToValidUTF8(path.Base(strings.TrimSuffix(exe, " (deleted)")), "\uFFFD")
	namespace, err := root.Readlink("ns/mnt")
	if err != nil {
		return p, err
	}
	p.MountNS = strings.TrimSuffix(namespace+" "+rootPath+" "+p.Container, " ")
	if err := c.readEnviron(root, parent, namespace, before, &p); err != nil {
		return p, err
	}
	env := Env(func(name string) (string, bool) { v, ok := p.Env[name]; return v, ok })
	// The files in a directory with a relative path are found when they are mapped.
	dir := env.StoreDir()
	if env.WritesRing() {
		dir = env.Dir()
	}
	if path.IsAbs(dir) {
		p.addDir(path.Clean(dir))
	}
	if err := c.readMappings(root, rootPath, before.Process, &p); err != nil {
		return p, err
	}
	p.Agent = p.library || env.Enabled()
	if p.usesNIXL() {
		describe(root, &p.Process)
	}
	return p, nil
}

// readEnviron sets the environment and the attributes of a process. If the process has
// overwritten its environment, they are those from an earlier examination, or else those of
// the nearest ancestor in the same mount namespace that has an intact environment, because a
// child usually inherits it.
func (c Config) readEnviron(root *os.Root, parent int, namespace string, before state, p *state) error {
	env, intact, err := c.environ(root)
	if err != nil {
		return err
	}
	if !intact && before.Own {
		p.Env, p.Attributes, p.Own, p.Known = before.Env, before.Attributes, true, true
		return nil
	}
	p.Own = intact
	for range maxAncestors {
		if intact || parent == 0 {
			break
		}
		env, intact, parent = c.ancestor(parent, namespace)
	}
	p.Env, p.Known = env, intact
	if env[resourceAttributes] != "" || env[serviceName] != "" {
		p.Attributes = c.attributes(env[resourceAttributes], env[serviceName])
		delete(env, resourceAttributes) // it may be long, and there may be many processes
	}
	return nil
}

// ancestor returns the environment and the parent of a process if it is in a mount namespace.
func (c Config) ancestor(pid int, namespace string) (env map[string]string, intact bool, parent int) {
	root, err := os.OpenRoot(pidDir(c.Proc, pid))
	if err != nil {
		return nil, false, 0
	}
	defer root.Close()
	b, _ := readFile(root, "stat", maxFile)
	there, _ := root.Readlink("ns/mnt")
	parent, _, ok := parseStat(b)
	if !ok || there != namespace {
		return nil, false, 0
	}
	env, intact, err = c.environ(root)
	if err != nil {
		return nil, false, 0
	}
	return env, intact, parent
}

func (c Config) environ(root *os.Root) (env map[string]string, intact bool, err error) {
	f, err := root.Open("environ")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	return readEnviron(f, c.variables())
}

// readMappings adds what the mappings of a process show. A ring whose file was removed can't be
// opened. The process still has those that it had before, as long as a removed file in one of
// their directories is mapped.
func (c Config) readMappings(root *os.Root, rootPath string, before Process, p *state) error {
	f, err := root.Open("maps")
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := readMaps(f, rootPath)
	p.library = found.library
	removed := false
	for _, file := range found.files {
		dir := path.Dir(file)
		id, ok := c.identify(p.Process, file)
		if ok {
			p.Files = append(p.Files, File{id, file})
		} else if strings.HasSuffix(file, " (deleted)") && slices.Contains(before.Dirs, dir) {
			ok, removed = true, true
		}
		if ok || isStore(file) {
			p.addDir(dir)
		}
	}
	for _, f := range before.Files {
		if removed && len(p.Files) < maxFiles && !p.Maps(f.ID) {
			p.Files = append(p.Files, f)
		}
	}
	return err
}

// identify returns the ID of a file below the root of a process, and whether it is a ring or a store. The
// mapping itself shows another device on Btrfs and, with old kernels, on overlayfs.
func (c Config) identify(p Process, file string) (files.ID, bool) {
	dir, err := OpenDir(p, c.Proc, path.Dir(file), ".")
	if err != nil {
		return files.ID{}, false
	}
	defer dir.Close()
	f, err := dir.OpenFile(path.Base(file), os.O_RDONLY)
	if err != nil {
		return files.ID{}, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return files.ID{}, false
	}
	_, err = ringbuf.PeekFile(f)
	return files.IDOf(info), isStore(file) || err == nil || errors.Is(err, ringbuf.ErrUnknownVersion)
}

// describe sets the rank of an agent's process and the name of its container. Both are optional.
func describe(root *os.Root, p *Process) {
	title, _ := readFile(root, "cmdline", maxFile)
	p.Rank = rankIn(title)
	if p.Pod != "" {
		mounts, _ := readFile(root, "mountinfo", maxMountinfo)
		p.ContainerName = parseMountinfo(mounts, p.Pod)
	}
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
