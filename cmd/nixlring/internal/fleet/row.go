// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Row is an agent for display.
type Row struct {
	*diagnose.Agent
	Rates
	Age      time.Duration // since the last event, or with NoEvents since the agent was first seen
	NoEvents bool          // no event was written since the agent was first seen
	Draining diagnose.Draining
	Findings []*diagnose.Finding
	Place    int       // of the first finding that is a problem, from 1 on; 0 without one
	Problems []Problem // the worst first
}

// Title returns the agent's name with that of its pod or host. From rings, the name already begins with that of the pod.
func (r *Row) Title() string { return strings.TrimPrefix(cmp.Or(r.Pod, r.Host)+"/"+r.Name, "/") }

// Rates are what an agent did in a time. Quantiles are NaN without transfers.
type Rates struct {
	Out, In, Completed, Failures float64 // per second
	P50, P99                     float64 // seconds
	Speed                        float64 // bytes per second of transfer time
	Window                       struct{ Times, Sizes diagnose.Histogram }
}

// Problem is a note about an agent.
type Problem struct {
	Severity diagnose.Severity
	Text     string // a few words
}

// Worst returns the severity of the worst problem, or "".
func (r *Row) Worst() diagnose.Severity {
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0].Severity
}

// Consumer returns a short name of the program that takes events from the ring, or "" if it is unknown.
func (r *Row) Consumer() string {
	switch r.Draining {
	case diagnose.Drained, diagnose.Hanging:
		return r.Ring.Consumer.String()
	case diagnose.Foreign:
		return "foreign"
	case diagnose.Nobody:
		return "nobody"
	default:
		return ""
	}
}

// row returns an agent of the newest frame.
func (b *Board) row(a *diagnose.Agent) *Row {
	m := b.members[a.ID]
	from, begin := b.before(a.ID)
	r := &Row{
		Agent: a, Rates: measure(from, a, b.last.Time.Sub(begin)),
		Age: b.last.Time.Sub(m.seen), NoEvents: m.wrote.IsZero(), Draining: b.result.Draining[a.ID],
	}
	if !r.NoEvents {
		r.Age = b.last.Time.Sub(m.wrote)
	}
	for i := range b.result.Findings {
		f := &b.result.Findings[i]
		for n := range f.Agents {
			if f.Agents[n].ID == a.ID {
				r.Findings = append(r.Findings, f)
				r.Problems = append(r.Problems, Problem{f.Severity, f.Short})
				if r.Place == 0 && f.Severity.AtLeast(diagnose.Warning) {
					r.Place = i + 1
				}
			}
		}
	}
	if a.Ring != nil && from.Ring != nil {
		if a.Ring.Misses > from.Ring.Misses {
			r.Problems = append(r.Problems, Problem{diagnose.Info, "missed events"})
		}
		if a.Ring.Restarts > from.Ring.Restarts {
			r.Problems = append(r.Problems, Problem{diagnose.Info, "restarted"})
		}
	}
	if a.Up == diagnose.No {
		r.Problems = append(r.Problems, Problem{diagnose.Info, "agent exited"})
	}
	return r
}

// measure returns the rates between two states of an agent.
func measure(from, to *diagnose.Agent, elapsed time.Duration) Rates {
	r := Rates{Speed: math.NaN()}
	r.Window.Times, r.Window.Sizes = to.Times.Since(from.Times), to.Sizes.Since(from.Sizes)
	r.P50, r.P99 = r.Window.Times.Quantile(0.5), r.Window.Times.Quantile(0.99)
	a, b := from.Both(), to.Both()
	if b.Transfers > a.Transfers {
		const shortest = 1e-6
		r.Speed = float64(b.Bytes-a.Bytes) / max(shortest, b.Seconds-a.Seconds)
	}
	if s := elapsed.Seconds(); s > 0 {
		r.Out, r.In = float64(to.Moved[0].Bytes-from.Moved[0].Bytes)/s, float64(to.Moved[1].Bytes-from.Moved[1].Bytes)/s
		r.Completed, r.Failures = float64(b.Transfers-a.Transfers)/s, float64(to.Failed()-from.Failed())/s
	}
	return r
}

// Duration formats a quantile of times, in seconds. The last bound is formatted as ">100 s", because the
// last bucket has no upper bound. NaN is empty.
func Duration(seconds float64) string {
	if longest := timeBounds[len(timeBounds)-1]; seconds >= longest {
		return ">" + units.Bare(units.Duration(longest))
	}
	return units.Duration(seconds)
}
