// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Defaults of a [Board].
const (
	DefaultWindow  = 5 * time.Second
	DefaultHistory = 120
)

// Board computes rows from samples. It isn't safe for concurrent use.
type Board struct {
	window  time.Duration
	history int
	tracks  map[string]*track
	rows    []Row
	sum     Sum
	sample  Sample    // the newest one that didn't fail
	stale   time.Time // since when samples have failed; zero if the newest one didn't
	failed  error     // why

	recent   []diagnose.Sample // oldest first
	old      int               // how many of them are sparse
	findings []diagnose.Finding
	checks   []diagnose.Check
	since    map[diagnose.Key]time.Time // when they began
}

// NewBoard returns a board that computes rates over window and keeps the last history samples
// of each agent.
func NewBoard(window time.Duration, history int) *Board {
	return &Board{window: window, history: history, tracks: make(map[string]*track)}
}

// Add adds a sample. It must be later than the previous one. Agents that aren't in the
// sample are removed. A failed sample says nothing about agents, so everything stays.
func (b *Board) Add(s Sample) {
	if s.Failed != nil {
		if b.stale.IsZero() {
			b.stale = s.At
		}
		b.failed = s.Failed
		return
	}
	b.stale, b.failed = time.Time{}, nil
	seen := make(map[string]*track, len(s.Agents))
	b.rows = b.rows[:0]
	for i := range s.Agents {
		r := &s.Agents[i]
		t := b.tracks[r.ID]
		if t == nil || !t.reading.Start.Equal(r.Start) { // new totals
			t = newTrack(s.At, r, b.window, b.history)
		}
		t.add(s.At, r)
		b.rows = append(b.rows, t.row())
		seen[r.ID] = t
	}
	b.tracks = seen
	b.sample = s
	b.diagnose()
	found := b.noted()
	b.sum = Sum{Agents: len(s.Agents), Duration: make([]uint64, len(bounds)+1)}
	for i := range b.rows {
		r := &b.rows[i]
		r.Findings = found[r.agent()]
		r.Problems = r.problems()
		b.sum.add(r)
	}
	b.sum.P50, b.sum.P99 = Quantile(b.sum.Duration, 0.5), Quantile(b.sum.Duration, 0.99)
}

// At returns the time of the newest sample.
func (b *Board) At() time.Time { return b.sample.At }

// Err returns the error of the newest sample.
func (b *Board) Err() error {
	if b.sample.At.IsZero() && b.failed != nil {
		return b.failed
	}
	return b.sample.Err
}

// Excluded returns the number of excluded agents in the newest sample.
func (b *Board) Excluded() int { return b.sample.Excluded }

// Unseen returns which processes can't be inspected, if the newest sample has an agent whose state is
// unknown.
func (b *Board) Unseen() string { return b.sample.Unseen }

// Warning returns the warning of the newest sample, or since when there has been none.
func (b *Board) Warning() string {
	if b.failed != nil {
		return fmt.Sprintf("no data since %s: %v", b.stale.Format(time.TimeOnly), b.failed)
	}
	return b.sample.Warning
}

// Rows returns all agents, sorted by path. They are valid until the next call of Add.
func (b *Board) Rows() []Row { return b.rows }

// Row returns the agent with an ID, or nil.
func (b *Board) Row(id string) *Row {
	i := slices.IndexFunc(b.rows, func(r Row) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &b.rows[i]
}

// Sum is the sum over all agents.
type Sum struct {
	Agents, WithProblems       int
	Out, In, Transfers, Errors float64  // per second
	P50, P99                   float64  // seconds; NaN if there were no transfers
	Memory                     int64    // bytes of the agents whose memory is known
	MemoryUnknown              int      // number of agents whose memory is unknown
	Duration                   []uint64 // histogram of the window
}

func (s *Sum) add(r *Row) {
	if r.Worst() >= Warn {
		s.WithProblems++
	}
	s.Out += r.Out
	s.In += r.In
	s.Transfers += r.Transfers
	s.Errors += r.Errors
	if r.MemoryUnknown {
		s.MemoryUnknown++
	} else {
		s.Memory += r.Memory
	}
	for i, n := range r.Window.Duration {
		s.Duration[i] += n
	}
}

// Sum returns the sum over all agents.
func (b *Board) Sum() *Sum { return &b.sum }

// History is the newest points of an agent, oldest first, one per sample.
type History struct {
	Out, In, Transfers, Errors []float64 // per second
	P50, P99                   []float64 // seconds; NaN without transfers
	Throughput                 []float64 // median of the transfers, in bytes/s; NaN without transfers
	Fill                       []float64 // peak, 0 to 1
}

// History returns the history of the agent with an ID.
func (b *Board) History(id string) History {
	if t := b.tracks[id]; t != nil {
		return t.history
	}
	return History{}
}

// add adds a point to each series, and removes the oldest ones beyond limit.
func (h *History) add(limit int, elapsed time.Duration, d *Totals, fill float64) {
	per := 1 / elapsed.Seconds()
	p50, p99, throughput := math.NaN(), math.NaN(), throughputQuantile(d.Throughput, 0.5)
	if d.Transfers > 0 {
		p50, p99 = Quantile(d.Duration, 0.5), Quantile(d.Duration, 0.99)
	}
	for _, s := range []struct {
		series *[]float64
		value  float64
	}{
		{&h.Out, float64(d.Out) * per},
		{&h.In, float64(d.In) * per},
		{&h.Transfers, float64(d.Transfers) * per},
		{&h.Errors, float64(d.Errors) * per},
		{&h.P50, p50},
		{&h.P99, p99},
		{&h.Throughput, throughput},
		{&h.Fill, fill},
	} {
		if len(*s.series) >= limit {
			copy(*s.series, (*s.series)[1:])
			*s.series = (*s.series)[:limit-1]
		}
		*s.series = append(*s.series, s.value)
	}
}
