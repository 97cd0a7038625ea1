// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Finding is a problem of an agent or a job.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Agents are the affected agents. A finding about an agent has one.
	Agents []Identity `json:"agents"`
	Since  time.Time  `json:"since,omitzero"`
	// Ratio is how far the agent is from its peers or its past, or a share. 0 if the kind has none.
	Ratio float64 `json:"ratio,omitempty"`

	Short    string   `json:"short"`    // a few words, without the name of the agent
	What     string   `json:"what"`     // one sentence
	Evidence []string `json:"evidence"` // what was measured
	Not      string   `json:"not,omitempty"`
	Next     string   `json:"next"` // what to do
	// Commands examine the host of the first agent, if its name is known.
	Commands []string `json:"commands,omitempty"`

	job bool // about a job, not an agent
}

// newFinding returns a finding with what its kind says.
func newFinding(k Kind, agents []Identity, short, what string, evidence ...string) Finding {
	about := kinds[k.urgency()]
	return Finding{
		Kind: k, Severity: about.severity, Agents: agents, Short: short, What: what, Evidence: append([]string{}, evidence...),
		Not: about.not, Next: about.next, Commands: commands(agents), job: len(agents) > 1 || slices.Contains([]Kind{JobStalled, JobSlower, Failing, Gone}, k),
	}
}

// Alerted returns a finding of an alert, whose name is its kind.
func Alerted(name string, s Severity, agents []Identity, what, evidence, next string) Finding {
	return Finding{Kind: Kind(name), Severity: s, Agents: agents, Short: name, What: what, Evidence: []string{evidence}, Next: next, Commands: commands(agents), job: len(agents) > 1}
}

// commands returns the commands that examine the host of the first agent. The name may come from a stranger.
func commands(agents []Identity) []string {
	if len(agents) == 0 || !hostname.MatchString(agents[0].Host) {
		return nil
	}
	return CommandsOn(agents[0].Host)
}

// CommandsOn returns the commands that examine a host of Kubernetes.
func CommandsOn(host string) []string {
	return []string{"kubectl -n nixl get pods -o wide --field-selector spec.nodeName=" + host, "kubectl -n nixl exec POD -- nixlring why"}
}

var hostname = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// OfJob reports whether the finding is about a job, not an agent.
func (f *Finding) OfJob() bool { return f.job }

// Key identifies a finding at different times.
type Key struct {
	kind Kind
	id   string // of the agent; empty if the finding is about a job
	job  Job
}

// Key returns the key of the finding.
func (f *Finding) Key() Key {
	k := Key{f.Kind, f.first().ID, f.first().Job}
	if f.job {
		k.id = ""
	}
	return k
}

// first returns the first agent, or none.
func (f *Finding) first() Identity {
	if len(f.Agents) == 0 {
		return Identity{}
	}
	return f.Agents[0]
}

// Sort sorts findings, the worst first.
func Sort(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			b.Severity.rank()-a.Severity.rank(),
			a.Kind.urgency()-b.Kind.urgency(),
			cmp.Compare(a.goodness(), b.goodness()),
			compareAgents(a.first(), b.first()),
		)
	})
}

// goodness is lower for a worse finding of the same kind. A low speed is bad, and a high share. Ratios that differ by
// less than a fifth are equal, so that the first finding doesn't change with each frame.
func (f *Finding) goodness() float64 {
	const steps = 4 // per factor of two
	ratio := math.Round(steps * math.Log2(f.Ratio))
	switch f.Kind {
	case Straggler, Slower, JobSlower:
		return ratio
	default:
		return -ratio
	}
}

// Group returns the findings that share a cause: the kind, the severity and the job. They stay in order.
func Group(list []Finding) [][]Finding {
	type cause struct {
		kind     Kind
		severity Severity
		job      Job
		what     string // of a finding about a process
	}
	return grouped(list, func(f Finding) cause {
		if len(f.Agents) == 0 {
			return cause{what: f.What}
		}
		return cause{kind: f.Kind, severity: f.Severity, job: f.first().Job}
	})
}

// grouped returns the items that have a key in common, in the order of the first ones.
func grouped[T any, K comparable](list []T, key func(T) K) (groups [][]T) {
	at := make(map[K]int)
	for _, v := range list {
		i, ok := at[key(v)]
		if !ok {
			i = len(groups)
			at[key(v)], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], v)
	}
	return groups
}

func compareAgents(a, b Identity) int {
	return cmp.Or(
		strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Service, b.Service),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Host, b.Host), strings.Compare(a.ID, b.ID),
	)
}

// String returns the name of an agent, with its pod and host if they are known.
func (a Identity) String() string {
	name := a.Name
	if a.Pod != "" {
		name += " (pod " + strings.TrimPrefix(a.Namespace+"/", "/") + a.Pod + ")"
	}
	if a.Host != "" {
		name += " on " + a.Host
	}
	return name
}

// String returns the name of a job.
func (j Job) String() string { return cmp.Or(j.Service, "this directory") }

func percent(ratio float64) string { return fmt.Sprintf("%.0f%%", 100*ratio) }

func size(bytes float64) string { return units.Memory(int64(bytes)) }

// counted returns a text for one, or for more.
func counted(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
