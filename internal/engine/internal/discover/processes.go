// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
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
	// what Attributes selects.
	EnvAttributes map[string]string
	// Attributes are patterns of the keys that are taken from OTEL_RESOURCE_ATTRIBUTES;
	// see [process.Config].
	Attributes []string
	// Proc is the mount point of the proc file system; /proc if empty.
	Proc string
}

// minSearch is the shortest interval between two searches.
const minSearch = 100 * time.Millisecond

// Check reports the invalid values. Each error starts with the key of the receiver's
// configuration.
func (p *Processes) Check() error {
	var errs []error
	if p.Interval < minSearch {
		errs = append(errs, fmt.Errorf("discovery::processes::interval: %v is too short: use at least %v, such as %v", p.Interval, minSearch, DefaultInterval))
	}
	errs = append(errs, p.checkEnvAttributes())
	for _, pattern := range p.Attributes {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, fmt.Errorf("discovery::processes::otel_resource_attributes: %q is not a valid pattern: list keys or patterns, such as service.*", pattern))
		}
	}
	return errors.Join(errs...)
}

// checkEnvAttributes reports names that can't be used, and variables that would
// overwrite each other's value.
func (p *Processes) checkEnvAttributes() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("discovery::processes::env_attributes: "+format, args...))
	}
	setBy := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(p.EnvAttributes)) {
		attribute := p.EnvAttributes[name]
		wrong := wrongKey(attribute, semconv.LocalRank, semconv.ServiceName, semconv.K8SContainerName)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			fault("%q is not the name of an environment variable", name)
		case attribute == "":
			fault("%s has no attribute: name one, such as %s", name, semconv.LocalRank)
		case wrong != "":
			fault("%s: %s", name, wrong)
		case setBy[process.Label(attribute)] != "":
			fault("%s and %s both set %s: keep one of them", setBy[process.Label(attribute)], name, attribute)
		default:
			setBy[process.Label(attribute)] = name
		}
	}
	return errors.Join(errs...)
}

// Finder returns a Finder that finds the directories. A process can't set the reserved attributes.
func (p Processes) Finder(by IdentifyBy, reserved ...string) Finder {
	p.Proc = cmp.Or(p.Proc, "/proc")
	host := ""
	if namespace, err := os.Readlink(filepath.Join(p.Proc, "1", "ns", "mnt")); err == nil {
		host = namespace + " /"
	}
	f := &processes{
		Processes: p, by: by, host: host, sought: make(map[string]bool),
		scanner: process.New(process.Config{
			Proc: p.Proc, Env: slices.Sorted(maps.Keys(p.EnvAttributes)),
			Attributes: p.Attributes, Reserved: slices.AppendSeq(reserved, maps.Values(p.EnvAttributes)),
		}),
	}
	return Finder{Source: "processes", Name: p.Proc, Find: f.find, Interval: p.Interval, Hold: true}
}

type processes struct {
	Processes
	by      IdentifyBy
	scanner *process.Scanner
	host    string // the host's mount namespace, as in process.Process; "" if unknown

	containers map[string]*container // found by the last search, by mount namespace and directory

	mu     sync.Mutex
	sought map[string]bool // mount namespaces whose processes the next search examines again
}

// find finds all directories. A Location is a directory in a mount namespace, which the
// processes of a container share.
func (p *processes) find(now time.Time) (map[string]Location, error) {
	p.mu.Lock()
	sought := p.sought
	p.sought = make(map[string]bool)
	p.mu.Unlock()
	all, err := p.scanner.Scan(now, func(one process.Process) bool { return sought[one.MountNS] })
	if all == nil {
		return nil, err
	}
	found, containers, locations := make(map[string]*seen), make(map[string]*container), make(map[string]Location)
	for _, one := range all {
		for _, dir := range one.Dirs {
			key := one.MountNS + " " + dir
			if found[key] == nil {
				found[key] = &seen{began: p.scanner.Seen(one.Container), complete: err == nil}
				if containers[key] = p.containers[key]; containers[key] == nil {
					containers[key] = p.newContainer(one, dir)
				}
			}
			found[key].processes = append(found[key].processes, one)
		}
	}
	for key, c := range containers {
		c.seen.Store(found[key])
		locations[key] = c.Location
	}
	p.containers = containers
	return locations, err
}

// container is a directory in a container, or on the host.
type container struct {
	Location

	finder    *processes
	namespace string // as in process.Process
	dir       string // path in the container
	seen      atomic.Pointer[seen]
}

func (p *processes) newContainer(one process.Process, dir string) *container {
	c := &container{finder: p, namespace: one.MountNS, dir: dir}
	c.Location = Location{
		Path: filepath.Join(p.Proc, strconv.Itoa(one.PID), "root", dir), Holder: p.holder(one, dir),
		OpenDir: c.openDir, Identify: c.identifyRing, IdentifyStore: c.identifyStore,
	}
	return c
}

// seen is what a search has found in a directory.
type seen struct {
	began     time.Time         // see [process.Scanner.Seen]
	complete  bool              // all processes could be examined
	processes []process.Process // that see the directory
}

// openDir opens a directory through any process that is still running.
func (c *container) openDir(name string) (*files.Dir, error) {
	for _, p := range c.seen.Load().processes {
		f, err := process.OpenDir(p, c.finder.Proc, c.dir, name)
		if !errors.Is(err, process.ErrExited) {
			return f, err
		}
	}
	return nil, errGone
}

// identifyRing identifies the agent of a ring. The agent's process is the one that has its ring mapped.
func (c *container) identifyRing(a drain.Agent, ring *ringbuf.Reader, since time.Time) (drain.Agent, drain.Up) {
	id, by := idOf(ring), c.finder.by
	a.Dir, a.Unattributed = c.dir, false
	last := c.seen.Load()
	for _, p := range last.processes {
		if slices.Contains(p.Rings, id) && process.Runs(c.finder.Proc, p) {
			return by.identify(a, c.finder.origin(p)), drain.UpYes
		}
	}
	a = by.identify(a, c.common(last.processes))
	switch {
	case last.began.After(since) && last.complete:
		return a, drain.UpNo
	case last.began.After(since):
		return a, drain.UpUnknown
	}
	c.finder.mu.Lock()
	defer c.finder.mu.Unlock()
	c.finder.sought[c.namespace] = true
	if a.Unattributed = true; slices.Contains(by, ByRank) {
		a.ID = ""
	}
	return a, drain.UpUnknown
}

// identifyStore identifies an agent by the process that wrote its store. pid is the PID in
// the process's own PID namespace.
func (c *container) identifyStore(a drain.Agent, pid int64) drain.Agent {
	a.Dir = c.dir
	members := c.seen.Load().processes
	var o origin
	if i := slices.IndexFunc(members, func(p process.Process) bool { return int64(p.NSPID) == pid }); i >= 0 {
		o = c.finder.origin(members[i])
	} else if len(members) > 0 {
		o = c.finder.origin(members[0])
		o.resource, o.process = nil, nil
	}
	return c.finder.by.identify(a, o)
}

// common returns the origin of a ring that none of the processes has mapped. An earlier process
// may have left it, so the origin has only what the processes have in common with that one.
func (c *container) common(processes []process.Process) origin {
	if len(processes) == 0 {
		return origin{}
	}
	o := c.finder.origin(processes[0])
	if len(processes) > 1 {
		o.resource, o.process = nil, nil
	} else {
		o.resource = slices.DeleteFunc(o.resource, func(kv attribute.KeyValue) bool { return kv.Key == semconv.LocalRank })
	}
	return o
}

// holder returns the holder of a process's rings. Agents outside of containers share the
// host's directories.
func (p *processes) holder(of process.Process, dir string) drain.Holder {
	switch {
	case of.Container != "" || of.Pod != "":
		return drain.Holder{Pod: of.Pod, Container: of.Container}
	case of.MountNS != p.host && p.host != "":
		return drain.Holder{Place: of.MountNS}
	default:
		return drain.Holder{Place: dir, Shared: true}
	}
}

// origin returns the origin of a process's rings.
func (p *processes) origin(of process.Process) origin {
	o := origin{pod: of.Pod, container: of.Container, containerName: of.ContainerName}
	if of.MountNS != p.host && p.host != "" {
		o.namespace = of.MountNS
	}
	for key, value := range of.Attributes {
		o.resource = append(o.resource, attribute.String(key, value))
	}
	for name, key := range p.EnvAttributes {
		if value := of.Env[name]; value != "" {
			o.resource = append(o.resource, attribute.String(key, value))
		}
	}
	o.process = append(o.process, attribute.Int(semconv.ProcessPID, of.PID))
	if of.Executable != "" {
		o.process = append(o.process, attribute.String(semconv.ProcessExecutableName, of.Executable))
	}
	return o
}
