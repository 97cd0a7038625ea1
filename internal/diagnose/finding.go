// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of finding.
type Kind string

// The kinds.
const (
	Straggler         Kind = "straggler"          // one agent is far slower than its peers
	Slower            Kind = "slower"             // one agent is far slower than it was
	JobSlower         Kind = "job_slower"         // most agents of a job are far slower than they were
	Stalled           Kind = "stalled"            // one agent hangs
	JobStalled        Kind = "job_stalled"        // all agents of a job hang
	PostBound         Kind = "post_bound"         // posting takes longer than moving the data
	SmallBehindLarge  Kind = "small_behind_large" // small transfers wait behind large ones
	Failing           Kind = "failing"            // operations of a job fail
	SomeFail          Kind = "some_fail"          // some operations of an agent fail, again and again
	EventsLost        Kind = "events_lost"        // telemetry is incomplete
	EventsTaken       Kind = "events_taken"       // another consumer takes events
	NearlyFull        Kind = "ring_nearly_full"   // events may be lost soon
	CrashLoop         Kind = "crash_loop"         // an agent restarts again and again
	MemoryGrows       Kind = "memory_grows"       // an agent registers memory and never deregisters any
	Gone              Kind = "gone"               // agents of a job have exited
	Idle              Kind = "idle"               // an agent has no transfers while its peers have
	RingFull          Kind = "ring_full"          // nothing drains a ring, and it is full
	NoConsumer        Kind = "no_consumer"        // nothing drains a ring
	NoTelemetry       Kind = "no_telemetry"       // a process uses NIXL without telemetry
	TelemetryDisabled Kind = "telemetry_disabled" // a process disables telemetry, which breaks some engines
)

// OfTransfers reports whether findings of this kind are about transfers that are slow, hang or fail.
func (k Kind) OfTransfers() bool {
	switch k {
	case Straggler, Slower, JobSlower, Stalled, JobStalled, PostBound, SmallBehindLarge, Failing, SomeFail:
		return true
	default:
		return false
	}
}

// Severity is the severity of a finding.
type Severity string

// The severities. Info isn't a problem.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// rank orders severities.
func (s Severity) rank() int { return slices.Index([]Severity{Info, Warning, Critical}, s) }

// AtLeast reports whether a severity is as high as another.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }

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

	job bool // about a job, not an agent
}

// Key identifies a finding at different times.
type Key struct {
	kind Kind
	id   string // of the agent; empty if the finding is about a job
	job  Job
}

// Key returns the key of the finding.
func (f *Finding) Key() Key {
	k := Key{kind: f.Kind}
	if len(f.Agents) > 0 {
		k.id, k.job = f.Agents[0].ID, f.Agents[0].Job
	}
	if f.job {
		k.id = ""
	}
	return k
}

// OfJob reports whether the finding is about a job, not an agent.
func (f *Finding) OfJob() bool { return f.job }

// urgency is the order of kinds of the same severity.
var urgency = []Kind{
	JobStalled, Stalled, Failing, JobSlower, TelemetryDisabled, Straggler, Slower, SomeFail, SmallBehindLarge, PostBound,
	RingFull, EventsLost, EventsTaken, CrashLoop, MemoryGrows, NearlyFull, NoConsumer, NoTelemetry, Gone, Idle,
}

// Kinds returns all kinds, the most urgent first.
func Kinds() []Kind { return slices.Clone(urgency) }

// Sort sorts findings, the worst first.
func Sort(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			b.Severity.rank()-a.Severity.rank(),
			slices.Index(urgency, a.Kind)-slices.Index(urgency, b.Kind),
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
func Group(list []Finding) (groups [][]Finding) {
	type cause struct {
		kind     Kind
		severity Severity
		job      Job
	}
	at := make(map[cause]int)
	for _, f := range list {
		c := cause{f.Kind, f.Severity, f.first().Job}
		if at[c] == 0 || len(f.Agents) == 0 {
			groups = append(groups, nil)
			at[c] = len(groups)
		}
		groups[at[c]-1] = append(groups[at[c]-1], f)
	}
	return groups
}

func (f *Finding) first() Identity {
	if len(f.Agents) == 0 {
		return Identity{}
	}
	return f.Agents[0]
}

func compareAgents(a, b Identity) int {
	return cmp.Or(
		strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Service, b.Service),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Host, b.Host), strings.Compare(a.ID, b.ID),
	)
}
