// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"math"
	"path"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// The agents with the same service.name are peers, or else those of one directory.
func (r *Reading) agent() diagnose.Agent {
	return diagnose.Agent{Job: diagnose.Job{Service: cmp.Or(r.Service, path.Dir(r.Path))}, Name: r.Name, ID: r.ID}
}

// Diagnose returns the sample as package diagnose takes it.
func (s *Sample) Diagnose() diagnose.Sample {
	d := diagnose.Sample{At: s.At}
	for i := range s.Agents {
		r := &s.Agents[i]
		t := &r.Totals
		var errors map[string]uint64
		for _, f := range r.Failures {
			if errors == nil {
				errors = make(map[string]uint64, len(r.Failures))
			}
			errors[f.Status] = f.Count
		}
		d.Agents = append(d.Agents, diagnose.Reading{
			Agent: r.agent(), Up: upOf(r.Alive),
			Bytes: t.Out + t.In, Requests: t.Transfers, Busy: micros(t.Took), Post: micros(t.Posted), Errors: errors,
			Sizes: standardized(sizeBounds, t.Size, t.own.size), Times: standardized(bounds, t.Duration, t.own.duration),
			Fill: r.fill(), Saturations: t.Saturations, Dropped: t.Dropped, Torn: t.Torn, Foreign: t.Foreign,
		})
	}
	return d
}

// standardized returns a histogram with the bounds standard.
func standardized(standard []float64, counts []uint64, own []float64) diagnose.Histogram {
	if own != nil {
		counts = onto(standard, own, counts)
	}
	return diagnose.Histogram{Bounds: standard, Counts: counts}
}

func upOf(a procs.Alive) diagnose.Up {
	switch a {
	case procs.Yes:
		return diagnose.Yes
	case procs.No:
		return diagnose.No
	default:
		return diagnose.Unknown
	}
}

func severityOf(s diagnose.Severity) Severity {
	switch s {
	case diagnose.Critical:
		return Bad
	case diagnose.Warning:
		return Warn
	default:
		return Info
	}
}

// Ring returns the state of the row's ring.
func (r *Row) Ring() diagnose.Ring {
	ring := diagnose.Ring{Agent: r.agent(), Up: upOf(r.Alive), Store: r.Store, Name: r.ReaderName()}
	switch r.Reader {
	case Locked:
		ring.Consumer = diagnose.Drained
	case Stalled:
		ring.Consumer = diagnose.Hanging
	case Foreign:
		ring.Consumer = diagnose.Foreign
	case Nobody:
		ring.Consumer = diagnose.Nobody
	case Unknown, Hidden:
	}
	room := r.room()
	ring.Full = room <= 0
	if room > 0 && r.events > 0 {
		ring.FullIn = time.Duration(room / r.events * float64(time.Second))
	}
	return ring
}

// room returns the number of events for which the ring has room.
func (r *Row) room() float64 { return float64(max(r.Capacity-1, 0) - r.Peak) }

// remember is how long samples are kept for a diagnosis, at most, and how many windows.
const (
	remember        = 30 * time.Minute
	rememberWindows = 200
)

// keep adds the newest sample to those of the diagnosis.
func (b *Board) keep() {
	at := b.sample.At
	if n := len(b.recent); n > 1 && at.Sub(b.recent[n-2].At) < b.window/maxPoints {
		b.recent = b.recent[:n-1] // as in track.push
	}
	b.recent = append(b.recent, b.sample.Diagnose())
	whole := min(3*b.window, 2*time.Minute)
	for at.Sub(b.recent[b.old].At) > whole {
		// Two of those that are kept must be in one window: a speed is measured between them.
		if b.old > 0 && b.recent[b.old+1].At.Sub(b.recent[b.old-1].At) <= b.window {
			b.recent = slices.Delete(b.recent, b.old, b.old+1)
			continue
		}
		for i := range b.recent[b.old].Agents {
			r := &b.recent[b.old].Agents[i]
			r.Sizes, r.Times = diagnose.Histogram{}, diagnose.Histogram{}
		}
		b.old++
	}
	for at.Sub(b.recent[0].At) > min(remember, rememberWindows*b.window) {
		b.recent = slices.Delete(b.recent, 0, 1)
		b.old--
	}
}

// diagnose computes the findings. Speeds are those of the window, so that they equal the displayed ones,
// or those since the sample before if that is longer ago.
func (b *Board) diagnose() {
	b.keep()
	at, window := b.sample.At, b.window
	if n := len(b.recent); n > 1 {
		window = max(window, at.Sub(b.recent[n-2].At))
	}
	windows, rings := diagnose.Live(window, at.Sub(b.recent[0].At)), b.Rings()
	b.findings = diagnose.AddRings(diagnose.Now(b.recent, windows), rings)
	b.checks = diagnose.Checks(b.recent, rings, windows)
	since := make(map[diagnose.Key]time.Time, len(b.findings))
	for i := range b.findings {
		f := &b.findings[i]
		if f.Since.IsZero() {
			if f.Since = b.since[f.Key()]; f.Since.IsZero() {
				f.Since = at
			}
		}
		since[f.Key()] = f.Since
	}
	b.since = since
}

// Findings returns the findings of the newest sample, worst first. The slice is valid until
// the next call of Add.
func (b *Board) Findings() []diagnose.Finding { return b.findings }

// Checks returns what was looked for in the samples.
func (b *Board) Checks() []diagnose.Check { return b.checks }

// Rings returns the states of all rings.
func (b *Board) Rings() (rings []diagnose.Ring) {
	for i := range b.rows {
		rings = append(rings, b.rows[i].Ring())
	}
	return rings
}

// noted returns by agent the findings that its row shows in addition to the problems of its ring.
func (b *Board) noted() map[diagnose.Agent][]diagnose.Finding {
	found := make(map[diagnose.Agent][]diagnose.Finding)
	for i := range b.findings {
		f := &b.findings[i]
		if f.Kind == diagnose.Failing || f.Kind == diagnose.SomeFail || !f.Kind.OfTransfers() && f.Kind != diagnose.Idle {
			continue // the row says more
		}
		for _, a := range f.Agents {
			found[a] = append(found[a], *f)
		}
	}
	return found
}

// mean returns the total bytes divided by the total transfer time, in bytes per second.
func (t *Totals) mean() float64 {
	if t.Transfers == 0 {
		return math.NaN()
	}
	return float64(t.Out+t.In) / max(1, float64(t.Took)) * 1e6
}
