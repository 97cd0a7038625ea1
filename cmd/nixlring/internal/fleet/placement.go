// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// placement is what a process has open, and where it may run. That it has a device open doesn't mean that it uses it.
type placement struct {
	devices []string // RDMA devices
	far     []string // those of them on NUMA nodes that the process may not run on
}

// Place adds to the findings about stragglers what their processes have open, if that differs plainly from all of their peers on this host.
func Place(proc string, f *diagnose.Frame, findings []diagnose.Finding) {
	slow := make(map[string]bool)
	for i := range findings {
		if findings[i].Kind == diagnose.Straggler {
			slow[findings[i].Agents[0].ID] = true
		}
	}
	for i := range findings {
		if findings[i].Kind != diagnose.Straggler {
			continue
		}
		a := f.Agent(findings[i].Agents[0].ID)
		own, ok := placementOf(proc, a)
		var peers []placement
		for n := range f.Agents {
			if b := &f.Agents[n]; ok && b.Job == a.Job && !slow[b.ID] && b.Up == diagnose.Yes {
				var peer placement
				peer, ok = placementOf(proc, b)
				peers = append(peers, peer)
			}
		}
		if text := own.unlike(peers); ok && text != "" {
			findings[i].Evidence = append(findings[i].Evidence, text)
		}
	}
}

// unlike says how a process differs from all of its peers, or returns "".
func (p placement) unlike(peers []placement) string {
	all := func(is func(placement) bool) bool {
		return len(peers) > 0 && !slices.ContainsFunc(peers, func(q placement) bool { return !is(q) })
	}
	same := func(q placement) bool { return len(q.devices) == len(peers[0].devices) }
	open := fmt.Sprintf("its process has %d RDMA devices open", len(p.devices))
	switch len(p.devices) {
	case 0:
		open = "its process has no RDMA device open"
	case 1:
		open = "its process has one RDMA device open, " + p.devices[0]
	}
	switch {
	case all(func(q placement) bool { return same(q) && len(q.devices) > len(p.devices) }):
		return fmt.Sprintf("%s; those of its peers have %d", open, len(peers[0].devices))
	case len(p.far) > 0 && len(p.far) == len(p.devices) && all(func(q placement) bool { return len(q.devices) > 0 && len(q.far) == 0 }):
		return fmt.Sprintf("its process has only RDMA devices of other NUMA nodes open: %s; those of its peers have none of other nodes", strings.Join(p.far, ", "))
	}
	return ""
}

// placementOf examines the process of an agent. It fails if anything isn't known.
func placementOf(proc string, a *diagnose.Agent) (p placement, ok bool) {
	if a == nil || a.Attributes[semconv.ProcessPID] == "" {
		return p, false
	}
	dir, sys := filepath.Join(proc, a.Attributes[semconv.ProcessPID]), filepath.Join(proc, "1", "root", "sys")
	nodes, ok := nodesOf(dir, sys)
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil || !ok {
		return p, false
	}
	for _, fd := range open {
		target, _ := os.Readlink(filepath.Join(dir, "fd", fd.Name())) // it may have been closed
		if !strings.HasPrefix(target, "/dev/infiniband/uverbs") {
			continue
		}
		device := filepath.Join(sys, "class", "infiniband_verbs", filepath.Base(target))
		name, errName := os.ReadFile(filepath.Join(device, "ibdev"))
		node, errNode := os.ReadFile(filepath.Join(device, "device", "numa_node"))
		if errName != nil || errNode != nil {
			return p, false
		}
		text := units.Printable(strings.TrimSpace(string(name)))
		if slices.Contains(p.devices, text) {
			continue
		}
		p.devices = append(p.devices, text)
		if n := strings.TrimSpace(string(node)); n != "-1" && !slices.Contains(nodes, n) {
			p.far = append(p.far, text)
		}
	}
	return p, true
}

// nodesOf returns the NUMA nodes whose CPUs a process may run on.
func nodesOf(dir, sys string) (nodes []string, ok bool) {
	status, err := os.Open(filepath.Join(dir, "status"))
	if err != nil {
		return nil, false
	}
	defer status.Close()
	var allowed map[int]bool
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if list, found := strings.CutPrefix(lines.Text(), "Cpus_allowed_list:"); found {
			allowed = cpus(list)
		}
	}
	lists, _ := filepath.Glob(filepath.Join(sys, "devices", "system", "node", "node[0-9]*", "cpulist"))
	for _, path := range lists {
		list, err := os.ReadFile(path)
		if err != nil {
			return nil, false
		}
		for cpu := range cpus(string(list)) {
			if allowed[cpu] {
				nodes = append(nodes, strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "node"))
				break
			}
		}
	}
	return nodes, len(nodes) > 0
}

// cpus parses a list such as 0-3,8.
func cpus(list string) map[int]bool {
	const most = 1 << 16
	found := make(map[int]bool)
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.Atoi(first)
		to, errTo := strconv.Atoi(last)
		for cpu := from; errFrom == nil && errTo == nil && cpu <= min(to, most); cpu++ {
			found[cpu] = true
		}
	}
	return found
}
