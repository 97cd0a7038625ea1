// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Stores is a path where the processes of one pod, or of one container without a pod,
// keep the stores of NIXL's prometheus_mp exporter. Each container of the pod may
// have a different directory at this path, and a restarted container may have a new
// one. Stores is safe for concurrent use.
type Stores struct {
	container
	scope string
}

// Scope identifies the pod and the path.
func (s *Stores) Scope() string { return s.scope }

// Dirs returns functions that open the existing directories, one for each mount
// namespace.
func (s *Stores) Dirs() (list []func() (*ringbuf.Dir, error)) {
	var seen []string
	for _, p := range s.list() {
		if slices.Contains(seen, p.MountNS) {
			continue
		}
		seen = append(seen, p.MountNS)
		list = append(list, func() (*ringbuf.Dir, error) { return s.openIn(p.MountNS) })
	}
	return list
}

// openIn opens the directory in a mount namespace through any of its processes.
func (s *Stores) openIn(namespace string) (*ringbuf.Dir, error) {
	for _, p := range s.list() {
		if p.MountNS != namespace {
			continue
		}
		f, err := process.OpenDir(p, s.finder.Proc, s.dir, ".")
		if !errors.Is(err, process.ErrExited) {
			return f, err
		}
	}
	return nil, errGone
}

// Identify sets the resource of an agent from the process that wrote its store. pid is
// the PID in the process's own PID namespace. Identify doesn't change the agent's ID.
func (s *Stores) Identify(a drain.Agent, pid int64) drain.Agent {
	id := a.ID
	a.Dir = s.dir
	members := s.list()
	var o origin
	if i := slices.IndexFunc(members, func(p process.Process) bool { return int64(p.NSPID) == pid }); i >= 0 {
		o = s.finder.origin(members[i])
	} else if len(members) > 0 {
		o = s.finder.origin(members[0])
		o.resource = nil
	}
	a = s.finder.by.identify(a, o)
	a.ID = id
	return a
}

// stores returns the Stores of the processes, by scope.
func (p *processes) stores(all []process.Process) map[string]*Stores {
	found := make(map[string]*Stores)
	members := make(map[string][]process.Process)
	for _, one := range all {
		for _, dir := range one.Stores {
			o := p.origin(one)
			scope := cmp.Or(o.pod, o.container, o.namespace) + " " + dir
			s := cmp.Or(found[scope], p.lastStores[scope])
			if s == nil {
				path := filepath.Join(p.Proc, strconv.Itoa(one.PID), "root", dir)
				s = &Stores{container: container{finder: p, dir: dir, path: path}, scope: scope}
			}
			found[scope] = s
			members[scope] = append(members[scope], one)
		}
	}
	for scope, s := range found {
		s.set(members[scope])
	}
	return found
}
