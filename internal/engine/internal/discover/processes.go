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
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Processes finds the telemetry directories of all processes on the host, in any
// container. It requires the host's PID namespace, CAP_SYS_PTRACE and, for rings of
// other users, CAP_DAC_OVERRIDE.
type Processes struct {
	Interval time.Duration // between searches
	// EnvAttributes maps environment variables of a process to resource attributes
	// of its agents. Other variables aren't copied, except for OTEL_SERVICE_NAME,
	// what Attributes selects, and the rank.
	EnvAttributes map[string]string
	// Attributes are patterns of the keys that are taken from OTEL_RESOURCE_ATTRIBUTES;
	// see [process.Config].
	Attributes []string
	// StaleAfter is how long a directory without agents is watched.
	StaleAfter time.Duration
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
		Processes: p, by: by, host: host,
		scanner: process.New(process.Config{
			Proc: p.Proc, Env: slices.AppendSeq(slices.Clone(rankVariables), maps.Keys(p.EnvAttributes)),
			Attributes: p.Attributes, Reserved: slices.AppendSeq(reserved, maps.Values(p.EnvAttributes)),
		}),
	}
	f.last.Store(&search{})
	return Finder{Source: "processes", Name: p.Proc, Find: f.find, Interval: p.Interval, Hold: true}
}

type processes struct {
	Processes
	by      IdentifyBy
	scanner *process.Scanner
	host    string // the host's mount namespace, as in process.Process; "" if unknown

	last   atomic.Pointer[search]
	sought atomic.Bool // the next search examines all processes
}

// search is what a search has found.
type search struct {
	places   map[string]*place // by mount namespace and directory
	mapped   map[files.ID]mapping
	complete bool // all processes could be examined
}

// mapping is a process that has a file mapped, and the path of the file in its root.
type mapping struct {
	process.Process
	path string
}

// place is a directory in a mount namespace, which the processes of a container share.
type place struct {
	finder    *processes
	namespace string // as in process.Process
	dir       string // path in the container
	holder    drain.Holder
	file      atomic.Pointer[files.ID] // of the directory when it was last opened; nil before that
	sighting  atomic.Pointer[sighting]
}

// sighting is what a search has found in a place.
type sighting struct {
	at        time.Time         // when an agent was last found
	began     time.Time         // see [process.Scanner.Seen]
	processes []process.Process // the agents that see the directory, or the last ones that did
	door      process.Process   // another process in their mount namespace
}

// find finds all directories. One without agents is kept for a while, because agents may live for less than an interval.
func (p *processes) find(now time.Time) (map[string]Location, error) {
	all, err := p.scanner.Scan(now, p.sought.Swap(false))
	if all == nil {
		return nil, err
	}
	before := p.last.Load()
	next := &search{places: make(map[string]*place), mapped: make(map[files.ID]mapping), complete: err == nil}
	found, locations := make(map[string]*sighting), make(map[string]Location)
	for _, one := range all {
		for _, file := range one.Files {
			if other, taken := next.mapped[file.ID]; !taken || one.Precedes(other.Process) {
				next.mapped[file.ID] = mapping{one, file.Path}
			}
		}
		for _, dir := range one.Dirs {
			key, began := one.MountNS+" "+dir, p.scanner.Seen(one.Group)
			if found[key] == nil {
				found[key] = &sighting{at: now, began: began}
				if next.places[key] = before.places[key]; next.places[key] == nil {
					next.places[key] = &place{finder: p, namespace: one.MountNS, dir: dir, holder: p.holder(one, dir)}
				}
			}
			s := found[key]
			if s.processes = append(s.processes, one); began.Before(s.began) {
				s.began = began
			}
		}
	}
	for key, c := range before.places {
		last := *c.sighting.Load()
		if door, ok := p.scanner.In(c.namespace); ok && found[key] == nil && now.Sub(last.at) < p.StaleAfter {
			last.door, last.began = door, p.scanner.Seen(door.Group)
			found[key], next.places[key] = &last, c
		}
	}
	for key, c := range next.places {
		c.sighting.Store(found[key])
		locations[key] = Location{
			Path: filepath.Join(p.Proc, strconv.Itoa(found[key].processes[0].PID), "root", c.dir), Holder: c.holder, OpenDir: c.openDir, Identify: c.identify,
		}
	}
	p.last.Store(next)
	return locations, err
}

// openDir opens a directory through any process that is still running.
func (c *place) openDir(name string) (*files.Dir, error) {
	last := c.sighting.Load()
	for _, p := range append(slices.Clip(last.processes), last.door) {
		f, err := process.OpenDir(p, c.finder.Proc, c.dir, name)
		if errors.Is(err, process.ErrExited) {
			continue
		}
		if err == nil && name == "." {
			info, _ := f.Stat()
			c.file.Store(&info.ID)
		}
		return f, err
	}
	return nil, errGone
}

// identify identifies the agent of a ring or a store: it is that of the process that has the file mapped. The directory
// only leads to the file, and other containers may share it.
func (c *place) identify(a drain.Agent, file files.ID, since time.Time) attributed {
	p, last := c.finder, c.finder.last.Load()
	if of, ok := last.mapped[file]; ok {
		a.Dir = path.Dir(of.path)
		if dir, ok := strings.CutSuffix(of.path, "/"+a.Name); ok {
			a.Dir = dir
		}
		if a.Holder, a.Attribution = p.holder(of.Process, c.dir), drain.Known; !of.Known {
			a.Attribution = drain.Partly
		}
		got := p.by.identify(a, p.origin(of.Process))
		if process.Runs(p.Proc, of.Process) {
			got.up = drain.UpYes
		}
		return got
	}
	shared := last.sharing(c)
	a.Dir, a.Holder, a.Attribution = shared[0].dir, c.holder, drain.Left
	var members []process.Process
	began := c.sighting.Load().began
	for _, s := range shared {
		seen := s.sighting.Load()
		members = append(members, seen.processes...)
		if seen.began.Before(began) {
			began = seen.began
		}
	}
	got := p.by.identify(a, p.common(members))
	switch {
	case !began.After(since):
		got.Attribution = drain.Sought
		p.sought.Store(true)
	case last.complete:
		got.up = drain.UpNo
	}
	return got
}

// sharing returns the places of a directory, in order.
func (s *search) sharing(c *place) (list []*place) {
	for _, other := range s.places {
		if file := c.file.Load(); other != c && file != nil && other.file.Load() != nil && *other.file.Load() == *file {
			list = append(list, other)
		}
	}
	list = append(list, c)
	slices.SortFunc(list, func(a, b *place) int { return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.namespace, b.namespace)) })
	return list
}

// common returns what the processes that may have left a file have in common, but nothing that another process of
// the same agent doesn't have.
func (p *processes) common(list []process.Process) origin {
	o := p.origin(list[0])
	for _, one := range list[1:] {
		other := p.origin(one)
		if o.pod != other.pod {
			o.pod = ""
		}
		if o.containerName != other.containerName {
			o.containerName = ""
		}
		if o.container != other.container || o.unit != other.unit {
			o.container, o.unit, o.nested = "", "", false
		}
		o.resource = slices.DeleteFunc(o.resource, func(kv attribute.KeyValue) bool { return !slices.Contains(other.resource, kv) })
	}
	o.resource = slices.DeleteFunc(o.resource, func(kv attribute.KeyValue) bool { return kv.Key == semconv.LocalRank })
	o.process = nil
	return o
}

// holder returns the holder of a process's rings. Agents outside of containers share the
// host's directories.
func (p *processes) holder(of process.Process, dir string) drain.Holder {
	switch {
	case of.Container != "":
		return drain.Holder{Pod: of.Pod, Container: of.Group}
	case of.Pod != "":
		return drain.Holder{Pod: of.Pod}
	case p.sandboxed(of):
		return drain.Holder{Place: of.MountNS}
	default:
		return drain.Holder{Place: dir, Shared: true}
	}
}

// sandboxed reports whether a process outside of containers has a mount namespace of its own.
func (p *processes) sandboxed(of process.Process) bool { return of.MountNS != p.host && p.host != "" }

// rankVariables are set by torchrun, MPI and Slurm.
var rankVariables = []string{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "PMI_LOCAL_RANK"}

// origin returns the origin of a process's rings.
func (p *processes) origin(of process.Process) origin {
	o := origin{pod: of.Pod, container: of.Container, containerName: of.ContainerName}
	if of.Container != "" || p.sandboxed(of) {
		o.unit = of.Unit
	}
	o.nested = of.Container != "" && of.Container != of.Group
	for key, value := range of.Attributes {
		o.resource = append(o.resource, attribute.String(key, value))
	}
	set := strings.TrimSpace(of.Env[rankVariables[0]])
	for name, key := range p.EnvAttributes {
		switch value := strings.TrimSpace(of.Env[name]); {
		case value == "":
		case key == semconv.LocalRank:
			set = value
		default:
			o.resource = append(o.resource, attribute.String(key, of.Env[name]))
		}
	}
	rank := cmp.Or(of.Rank, set)
	if of.Own && set != "" { // otherwise, a worker inherits the rank of its parent
		rank = set
	}
	for _, name := range rankVariables[1:] {
		rank = cmp.Or(rank, strings.TrimSpace(of.Env[name]))
	}
	if rank != "" {
		o.resource = append(o.resource, attribute.String(semconv.LocalRank, rank))
	}
	o.process = append(o.process, attribute.Int(semconv.ProcessPID, of.PID))
	if of.Executable != "" {
		o.process = append(o.process, attribute.String(semconv.ProcessExecutableName, of.Executable))
	}
	return o
}
