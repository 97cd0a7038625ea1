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

// Processes finds the telemetry directories of all processes on the host, in any
// container. It requires the host's PID namespace, CAP_SYS_PTRACE and, for rings of
// other users, CAP_DAC_OVERRIDE.
type Processes struct {
	Interval time.Duration // between searches
	// EnvAttributes maps environment variables of a process to resource attributes
	// of its agents. Other variables aren't copied, except for OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES.
	EnvAttributes map[string]string
	// Proc is the mount point of the proc file system; /proc if empty.
	Proc string
	// OnStores receives all prometheus_mp stores after each search, by scope; it may be
	// nil.
	OnStores func(map[string]*Stores)
}

// Finder returns a Finder that finds the directories.
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
	host    string // the host's mount namespace, as in process.Process; "" if unknown

	lastDirs   map[string]*container // found by the last search
	lastStores map[string]*Stores    // found by the last search
}

// Name implements [Finder].
func (p *processes) Name() string { return p.Proc }

// Find implements [Finder]. A Location is a directory in a mount namespace, which the
// processes of a container share.
func (p *processes) Find(now time.Time) (map[string]Location, error) {
	all, err := p.scanner.Scan(now)
	if all == nil {
		return nil, err
	}
	members := make(map[string][]process.Process)
	found := make(map[string]*container)
	for _, one := range all {
		for _, dir := range one.Dirs {
			key := one.MountNS + " " + dir
			c := cmp.Or(found[key], p.lastDirs[key])
			if c == nil {
				c = &container{finder: p, dir: dir, path: filepath.Join(p.Proc, strconv.Itoa(one.PID), "root", dir)}
			}
			found[key] = c
			members[key] = append(members[key], one)
		}
	}
	p.lastDirs, p.lastStores = found, p.stores(all)
	if p.OnStores != nil {
		p.OnStores(p.lastStores)
	}
	locations := make(map[string]Location, len(found))
	for key, c := range found {
		c.set(members[key])
		locations[key] = c
	}
	return locations, err
}

// container is a directory in a container, or on the host.
type container struct {
	finder *processes
	dir    string // path in the container
	path   string // path when it was found

	mu      sync.Mutex
	members []process.Process // processes that see the directory
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

// OpenDir opens a directory through any process that is still running.
func (c *container) OpenDir(name string) (*ringbuf.Dir, error) {
	for _, p := range c.list() {
		f, err := process.OpenDir(p, c.finder.Proc, c.dir, name)
		if !errors.Is(err, process.ErrExited) {
			return f, err
		}
	}
	return nil, errGone
}

// Identify identifies an agent by the process that has its ring mapped.
func (c *container) Identify(a drain.Agent, ring *ringbuf.Reader) drain.Agent {
	a.Dir = c.dir
	return c.finder.by.identify(a, c.origin(ring.ID(), filepath.Join(c.dir, a.Name)))
}

// origin returns the origin of a ring. path is the ring's path in the container. If no
// process has the ring mapped, an earlier process may have left it, so origin uses
// only what the remaining processes have in common with that one.
func (c *container) origin(id ringbuf.FileID, path string) origin {
	members := c.list()
	if len(members) == 0 {
		return origin{}
	}
	if p, ok := c.finder.processOf(members, id, path); ok {
		return c.finder.origin(p)
	}
	o := c.finder.origin(members[0])
	if len(members) > 1 {
		o.resource = nil
	} else {
		o.resource = slices.DeleteFunc(o.resource, func(kv attribute.KeyValue) bool { return kv.Key == semconv.LocalRank })
	}
	return o
}

// origin returns the origin of a process's rings. Attributes from the environment come
// first, so that later ones replace them. It ignores k8s.* attributes from the
// environment, because the k8s_attributes processor doesn't overwrite existing ones.
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

// mapsRing reports whether a process has a ring mapped for writing. On an overlay file
// system, the mapping may have a different inode, so an equal path also counts.
func (p *processes) mapsRing(pid int, id ringbuf.FileID, path string) (found bool) {
	key := fileKey(id)
	writableMappings(filepath.Join(p.Proc, strconv.Itoa(pid), "maps"), func(m process.Mapping) bool {
		found = string(m.Path) == path || mappingKey(m) == key
		return !found
	})
	return found
}

// processOf returns the process that has a ring mapped: one of the members of a
// container, or a process that started in their mount namespace after the last search,
// such as a worker of a server.
func (p *processes) processOf(members []process.Process, id ringbuf.FileID, path string) (process.Process, bool) {
	for _, m := range members {
		if p.mapsRing(m.PID, id, path) {
			return m, true
		}
	}
	entries, _ := os.ReadDir(p.Proc) // without /proc, no process is found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.ContainsFunc(members, func(m process.Process) bool { return m.PID == pid }) {
			continue
		}
		namespace, err := os.Readlink(filepath.Join(p.Proc, e.Name(), "ns", "mnt"))
		if err != nil || !strings.HasPrefix(members[0].MountNS, namespace+" ") || !p.mapsRing(pid, id, path) {
			continue
		}
		if found, err := p.scanner.Examine(pid); err == nil {
			found.MountNS = members[0].MountNS
			return found, true
		}
	}
	return process.Process{}, false
}
