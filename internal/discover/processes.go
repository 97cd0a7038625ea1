// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Processes finds the telemetry directories of the processes of this host, in
// whatever container they run. It requires the PID namespace of the host,
// CAP_SYS_PTRACE and, for other users' rings, CAP_DAC_OVERRIDE.
type Processes struct {
	Interval time.Duration
	// EnvAttributes maps environment variables of a process to resource attributes
	// of its agents. No other variable gets into one.
	EnvAttributes map[string]string
	// Proc is where the proc file system is; /proc if empty.
	Proc string
	// FoundStores receives all stores of the exporter prometheus_mp after each search,
	// by scope; it may be nil.
	FoundStores func(map[string]*Stores)
}

// Finder returns a Finder of the directories.
func (p Processes) Finder(by IdentifyBy) Finder {
	p.Proc = cmp.Or(p.Proc, "/proc")
	host := ""
	if namespace, err := os.Readlink(filepath.Join(p.Proc, "1", "ns", "mnt")); err == nil {
		host = namespace + " /"
	}
	return &processes{
		Processes: p, by: by, host: host,
		scanner: process.New(process.Config{Proc: p.Proc, Env: slices.Sorted(maps.Keys(p.EnvAttributes))}),
	}
}

type processes struct {
	Processes
	by      IdentifyBy
	scanner *process.Scanner
	host    string                // the host's mount namespace, as a Process has it; "" if that can't be known
	found   map[string]*Stores    // by the last search
	places  map[string]*container // of the last search
}

// Name implements [Finder].
func (p *processes) Name() string { return p.Proc }

// Find implements [Finder]. A place is a directory in a mount namespace, which the
// processes of a container share.
func (p *processes) Find(now time.Time) (map[string]Place, error) {
	all, err := p.scanner.Scan(now)
	if all == nil {
		return nil, err
	}
	members := make(map[string][]process.Process)
	found := make(map[string]*container)
	for _, one := range all {
		for _, dir := range one.Dirs {
			key := one.MountNS + " " + dir
			members[key] = append(members[key], one)
			if found[key] == nil {
				if found[key] = p.places[key]; found[key] == nil {
					found[key] = &container{finder: p, dir: dir, path: filepath.Join(p.Proc, strconv.Itoa(one.PID), "root", dir)}
				}
			}
		}
	}
	p.places = found
	p.found = p.stores(all)
	if p.FoundStores != nil {
		p.FoundStores(p.found)
	}
	places := make(map[string]Place, len(found))
	for key, c := range found {
		c.set(members[key])
		places[key] = c
	}
	return places, err
}

// container is a directory in a container, or on the host.
type container struct {
	finder *processes
	dir    string // in the container
	path   string // when it was found

	mu      sync.Mutex
	members []process.Process // that see the directory
}

func (c *container) set(members []process.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = members
}

func (c *container) list() []process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members
}

func (c *container) Path() string { return c.path }

// OpenFolder opens a folder through any process that still runs.
func (c *container) OpenFolder(name string) (*ringbuf.Folder, error) {
	for _, p := range c.list() {
		f, err := process.OpenFolder(p, c.finder.Proc, c.dir, name)
		if !errors.Is(err, process.ErrExited) {
			return f, err
		}
	}
	return nil, errGone
}

// Identify finds the process that has mapped the ring.
func (c *container) Identify(a drain.Agent, ring *ringbuf.Reader) drain.Agent {
	a.Dir = c.dir
	members := c.list()
	path := filepath.Join(c.dir, a.Name)
	i := slices.IndexFunc(members, func(p process.Process) bool { return c.finder.maps(p.PID, ring.ID(), path) })
	if i < 0 {
		if p, ok := c.finder.started(members, ring.ID(), path); ok {
			return c.finder.by.identify(a, c.finder.origin(p))
		}
	}
	switch {
	case i >= 0:
		return c.finder.by.identify(a, c.finder.origin(members[i]))
	case len(members) == 1:
		o := c.finder.origin(members[0])
		// It may be a ring that an earlier process of this rank has left.
		o.resource = slices.DeleteFunc(o.resource, func(kv attribute.KeyValue) bool { return kv.Key == semconv.LocalRank })
		return c.finder.by.identify(a, o)
	case len(members) > 1: // of one container
		o := c.finder.origin(members[0])
		o.resource = nil
		return c.finder.by.identify(a, o)
	default:
		return c.finder.by.identify(a, origin{})
	}
}

// origin returns what is known about a process. Attributes of its environment come
// first, so that the others win. What it says about Kubernetes is ignored: the
// processor k8s_attributes knows that, and doesn't overwrite what is there.
func (p *processes) origin(of process.Process) origin {
	o := origin{pod: of.Pod, container: of.Container}
	if of.MountNS != p.host && p.host != "" {
		o.namespace = of.MountNS
	}
	for key, value := range of.Attributes() {
		if !slices.Contains(Reserved, key) && !strings.HasPrefix(key, "k8s.") {
			o.resource = append(o.resource, attribute.String(key, value))
		}
	}
	for name, key := range p.EnvAttributes {
		if value := of.Env[name]; value != "" {
			o.resource = append(o.resource, attribute.String(key, value))
		}
	}
	o.resource = append(o.resource, attribute.Int(semconv.ProcessPID, of.PID))
	if of.Executable != "" {
		o.resource = append(o.resource, attribute.String(semconv.ProcessExecutableName, of.Executable))
	}
	return o
}

// maps reports whether a process has a ring mapped for writing. An overlay file
// system may show another inode there, so the path, as the process sees it, will do.
func (p *processes) maps(pid int, id ringbuf.FileID, path string) (found bool) {
	f, err := os.Open(filepath.Join(p.Proc, strconv.Itoa(pid), "maps"))
	if err != nil {
		return false // it has exited
	}
	defer f.Close()
	want := mapped(id)
	_ = process.ReadMaps(f, func(m process.Mapping) bool {
		found = m.Write && m.Shared && (string(m.Path) == path || string(m.Dev)+" "+strconv.FormatUint(m.Inode, 10) == want)
		return !found
	})
	return found
}

// started returns the process that has a ring mapped and has started since the last
// search: the workers of a server, for example, have the environment of their parent,
// apart from the rank, and create the rings.
func (p *processes) started(members []process.Process, id ringbuf.FileID, path string) (process.Process, bool) {
	if len(members) == 0 {
		return process.Process{}, false
	}
	entries, _ := os.ReadDir(p.Proc) // without /proc nothing is known
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.ContainsFunc(members, func(m process.Process) bool { return m.PID == pid }) {
			continue
		}
		namespace, err := os.Readlink(filepath.Join(p.Proc, e.Name(), "ns", "mnt"))
		if err != nil || !strings.HasPrefix(members[0].MountNS, namespace+" ") || !p.maps(pid, id, path) {
			continue
		}
		if found, err := p.scanner.Examine(pid); err == nil {
			found.MountNS = members[0].MountNS
			return found, true
		}
	}
	return process.Process{}, false
}
