// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Row is an agent for display.
type Row struct {
	*diagnose.Agent
	Rates
	First    *diagnose.Agent // when it was first seen
	Age      time.Duration   // since the last event, or with NoEvents since the agent was first seen
	NoEvents bool            // no event was written since the agent was first seen
	Draining diagnose.Draining
	Findings []*diagnose.Finding
	Place    int       // of the first finding that is a problem, from 1 on; 0 without one
	Problems []Problem // the worst first
}

// Rates are what an agent did in a time. Quantiles are NaN without transfers.
type Rates struct {
	Out, In, Completed, Failures float64 // per second
	P50, P99, PostP50, PostP99   float64 // seconds
	// ThroughputP10 and ThroughputP50 are quantiles of the throughput of single transfers: a tenth and half of
	// the transfers are slower.
	ThroughputP10, ThroughputP50 float64
	Speed                        float64 // bytes per second of transfer time
	Window                       struct{ Times, PostTimes, Throughput, Sizes diagnose.Histogram }
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
		Agent: a, Rates: measure(from, a, b.last.Time.Sub(begin)), First: &m.first,
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
	w := &r.Window
	w.Times, w.PostTimes = to.Times.Since(from.Times), to.PostTimes.Since(from.PostTimes)
	w.Throughput, w.Sizes = to.Throughput.Since(from.Throughput), to.Sizes.Since(from.Sizes)
	r.P50, r.P99 = w.Times.Quantile(0.5), w.Times.Quantile(0.99)
	r.PostP50, r.PostP99 = w.PostTimes.Quantile(0.5), w.PostTimes.Quantile(0.99)
	r.ThroughputP10, r.ThroughputP50 = w.Throughput.Quantile(0.1), w.Throughput.Quantile(0.5)
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

// History is the newest points of an agent, oldest first, one per frame.
type History struct {
	Out, In, Completed, Failures []float64 // per second
	P50, P99                     []float64 // seconds
	Throughput                   []float64 // median of the transfers, in bytes per second
	Fill                         []float64 // peak, 0 to 1
}

// add adds a point to each series, and removes the oldest ones beyond limit.
func (h *History) add(limit int, r *Rates, fill float64) {
	for _, s := range []struct {
		series *[]float64
		value  float64
	}{
		{&h.Out, r.Out},
		{&h.In, r.In},
		{&h.Completed, r.Completed},
		{&h.Failures, r.Failures},
		{&h.P50, r.P50},
		{&h.P99, r.P99},
		{&h.Throughput, r.ThroughputP50},
		{&h.Fill, fill},
	} {
		if len(*s.series) >= limit {
			copy(*s.series, (*s.series)[1:])
			*s.series = (*s.series)[:limit-1]
		}
		*s.series = append(*s.series, s.value)
	}
}

// Duration formats a quantile of times, in seconds. The last bound is formatted as ">100 s", because the
// last bucket has no upper bound. NaN is empty.
func Duration(seconds float64) string {
	if longest := timeBounds[len(timeBounds)-1]; seconds >= longest {
		return ">" + units.Bare(units.Duration(longest))
	}
	return units.Duration(seconds)
}
