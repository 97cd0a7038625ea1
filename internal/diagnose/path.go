// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Link is a port of an RDMA device of the host, or a network interface that is a device.
type Link struct {
	Name  string    `json:"name"`
	RDMA  bool      `json:"rdma,omitempty"`
	Bytes [2]uint64 `json:"bytes"` // sent and received
}

// path is what agents moved in a time, and what the links of their host did.
type path struct {
	elapsed     float64 // seconds
	agents      float64 // bytes
	rdma, net   float64
	ports, nets map[string]float64 // by name
	known       bool               // the counters work
}

// Limits of what can be said about the path of transfers. Only a few are certain, and a false statement is worse than none.
const (
	pathBytes, pathRate  = 1e9, 100e6 // of the agents; less may be other traffic
	pathParts            = 4          // of the time; the bytes must agree in each
	mostOfPath           = 0.8        // of the agents' bytes: they went there
	littleOfPath         = 0.1        // of the agents' bytes: they didn't go there
	leastTCP, mostTCP    = 0.9, 1.3   // of the agents' bytes, with headers: they are what the interfaces moved
	looseLeast, looseTCP = 0.7, 1.6   // likewise, in a part of the time
)

// between returns the paths of writes and reads between two frames. The counters don't work if a port never moved anything, or
// started again.
func (h *history) between(from, to int) (paths [2]path) {
	for d := range paths {
		p := &paths[d]
		*p = path{elapsed: h.at[to].Sub(h.at[from]).Seconds(), ports: make(map[string]float64), nets: make(map[string]float64), known: true}
		for _, t := range h.agents {
			p.agents += float64(t.totals[max(t.first, to)].moved[d].Bytes - t.totals[max(t.first, from)].moved[d].Bytes)
		}
		before := make(map[string]Link)
		for _, l := range h.links[from] {
			before[l.Name] = l
		}
		for _, l := range h.links[to] {
			b, ok := before[l.Name]
			moved := float64(l.Bytes[d] - b.Bytes[d])
			p.known = p.known && ok && l.RDMA == b.RDMA && l.Bytes[d] >= b.Bytes[d] && (!l.RDMA || b.Bytes[0] > 0 && b.Bytes[1] > 0)
			if l.RDMA {
				p.rdma, p.ports[l.Name] = p.rdma+moved, moved
			} else {
				p.net, p.nets[l.Name] = p.net+moved, moved
			}
		}
		p.known = p.known && len(before) == len(h.links[to]) && len(p.ports) > 0
	}
	return paths
}

// path says where the transfers in the long window went, or "" if that isn't certain. It also returns a finding if they used TCP
// on a host with RDMA ports.
func (h *history) path(i int) (text string, found []Finding) {
	var at []int // frames with links
	for n := h.index(i, h.windows.Long); n <= i; n++ {
		if h.links[n] != nil {
			at = append(at, n)
		}
	}
	if len(at) <= pathParts {
		return "", nil
	}
	last := len(at) - 1
	kinds, texts := make(map[string]bool), []string{}
	for d, p := range h.between(at[0], at[last]) {
		if p.agents < pathBytes || p.agents < pathRate*p.elapsed {
			continue
		}
		kind := p.kind()
		for part := range pathParts {
			q := h.between(at[part*last/pathParts], at[(part+1)*last/pathParts])[d]
			if !q.agrees(kind) {
				kind = ""
			}
		}
		kinds[kind] = true
		texts = append(texts, fmt.Sprintf("in %s, agents %s %s; %s", units.Age(h.at[at[last]].Sub(h.at[at[0]])), [...]string{"wrote", "read"}[d],
			units.Bytes(uint64(p.agents)), p.text([...]string{"sent", "received"}[d])))
	}
	text = strings.Join(texts, "; ")
	switch {
	case len(kinds) != 1 || kinds[""]: // nothing, or not certain
		return "", nil
	case kinds["TCP"]:
		var agents []Identity
		for _, t := range h.agents {
			if h.during(t, i, h.windows.Long).moved[both].Bytes > 0 {
				agents = append(agents, t.Identity)
			}
		}
		found = append(found, newFinding(NotRDMA, agents, "TCP instead of RDMA", "Transfers go through network interfaces, although the host has RDMA ports.", texts...))
	case kinds["elsewhere"]:
		text += ": they went elsewhere, such as through NVLink or shared memory, to storage, or through devices of containers"
	}
	return text, found
}

// kind returns where the bytes went, or "" if that isn't certain.
func (p *path) kind() string {
	switch {
	case !p.known:
		return ""
	case p.rdma >= mostOfPath*p.agents:
		return "RDMA"
	case p.rdma > littleOfPath*p.agents || len(p.nets) == 0:
		return ""
	case p.net >= leastTCP*p.agents && p.net <= mostTCP*p.agents:
		return "TCP"
	case p.net < littleOfPath*p.agents:
		return "elsewhere"
	}
	return ""
}

// agrees reports whether a part of the time doesn't contradict what is known about all of it. Other traffic would have to change with the
// transfers.
func (p *path) agrees(kind string) bool {
	return p.known && (kind != "TCP" || p.rdma <= 2*littleOfPath*p.agents && p.net >= looseLeast*p.agents && p.net <= looseTCP*p.agents)
}

// text returns what the links did: the sum of the RDMA ports, and each interface.
func (p *path) text(did string) string {
	var used, list []string
	for name, bytes := range p.ports {
		if bytes > littleOfPath*p.rdma {
			used = append(used, name)
		}
	}
	slices.Sort(used)
	text := "the RDMA ports " + did + " " + units.Bytes(uint64(p.rdma))
	if n := len(used); n > 0 && n < len(p.ports) && p.rdma > littleOfPath*p.agents {
		text += fmt.Sprintf(" (mostly %s of %d ports)", strings.Join(used, ", "), len(p.ports))
	}
	for name, bytes := range p.nets {
		if bytes > littleOfPath*p.agents {
			list = append(list, name+" "+units.Bytes(uint64(bytes)))
		}
	}
	if slices.Sort(list); len(list) == 0 && len(p.nets) > 0 {
		list = append(list, "the network interfaces "+units.Bytes(uint64(p.net)))
	}
	return strings.Join(append([]string{text}, list...), ", ")
}
