// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math"
	"strconv"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// number is a value for display. NaN and infinity are null in JSON.
type number float64

// MarshalJSON implements [json.Marshaler] with four digits.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	const digits, small = 4, 1e6
	if n == number(math.Trunc(float64(n))) && math.Abs(float64(n)) < small {
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', digits, 64), nil
}

// state is what the page shows, except for its history. Times are Unix times in ms.
type state struct {
	Name     string             `json:"name"`  // what is watched
	Start    int64              `json:"start"` // of the watch
	At       int64              `json:"at"`    // 0 without a frame
	Notes    []string           `json:"notes"`
	Findings []diagnose.Finding `json:"findings"`
	Checks   []diagnose.Check   `json:"checks"`   // what was compared: the tiles
	Headline string             `json:"headline"` // if there is no problem
	Rows     []row              `json:"rows"`     // the agents with problems first
	Times    diagnose.Histogram `json:"times"`
	Sizes    diagnose.Histogram `json:"sizes"`
}

// mostFindings limits the findings: a fleet may have one per agent.
const mostFindings = 100

// row is an agent. Times are in seconds.
type row struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Layout    string            `json:"layout"`
	Capacity  int               `json:"capacity"`
	Store     bool              `json:"store"`
	Alive     string            `json:"alive"`
	Consumer  string            `json:"consumer"`
	Memory    number            `json:"memory"`
	Age       number            `json:"age"` // since the last event
	Speed     number            `json:"speed"`
	Out       number            `json:"out"`
	In        number            `json:"in"`
	Transfers number            `json:"transfers"`
	P50       number            `json:"p50"`
	P99       number            `json:"p99"`
	Errors    number            `json:"errors"`
	Fill      number            `json:"fill"`
	Severity  diagnose.Severity `json:"severity"` // of the worst problem; empty without one
	Problems  []string          `json:"problems"`
	Times     []uint64          `json:"times"` // the first bucket with transfers, and the counts from there on
}

// details is what only the page of an agent shows.
type details struct {
	ID      string              `json:"id"`
	Where   []string            `json:"where"`
	Slowest []diagnose.Transfer `json:"slowest"`
}

func (p *Page) newState() *state {
	b, sum := p.board, p.board.Sum()
	s := &state{
		Name: p.name, Notes: append([]string{}, b.Notes()...), Findings: append(diagnose.Processes(p.processes), b.Findings()...), Rows: []row{}, // not null
		Checks: append([]diagnose.Check{}, b.Checks()...), Times: sum.Times, Sizes: sum.Sizes,
	}
	if at := b.At(); !at.IsZero() {
		s.Start, s.At = p.begun.UnixMilli(), at.UnixMilli()
	}
	diagnose.Sort(s.Findings)
	s.Headline = diagnose.Headline(s.Findings, s.Checks, b.Still())
	s.Checks = append(s.Checks, diagnose.ProcessCheck(p.processes))
	s.Findings = append([]diagnose.Finding{}, s.Findings[:min(len(s.Findings), mostFindings)]...)
	for _, r := range b.Rows() {
		s.Rows = append(s.Rows, newRow(r))
	}
	return s
}

func newRow(r *fleet.Row) row {
	out := row{
		ID: r.ID, Name: r.Title(), Layout: r.Layout, Store: r.Store, Consumer: r.Consumer(),
		Alive: map[diagnose.Up]string{diagnose.Yes: "running", diagnose.No: "exited"}[r.Up], Memory: number(math.NaN()), Age: number(r.Age.Seconds()),
		Speed: number(r.Speed), Out: number(r.Out), In: number(r.In), Transfers: number(r.Completed),
		P50: number(r.P50), P99: number(r.P99), Errors: number(r.Failures), Fill: number(r.Fill()), Problems: []string{}, Times: []uint64{},
	}
	if r.Ring != nil {
		out.Capacity = r.Ring.Capacity
	}
	if r.Memory != nil {
		out.Memory = number(*r.Memory)
	}
	if r.Place > 0 {
		out.Severity = r.Worst()
	}
	for _, problem := range r.Problems {
		out.Problems = append(out.Problems, problem.Text)
	}
	counts := r.Window.Times.Counts
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	for i, n := range counts {
		if n > 0 {
			out.Times = append([]uint64{uint64(i)}, counts[i:]...)
			break
		}
	}
	return out
}

// newDetails returns the details of an agent, or nil.
func (p *Page) newDetails(id string) *details {
	r := p.board.Row(id)
	if r == nil {
		return nil
	}
	return &details{id, append([]string{}, fleet.Where(r.Agent)...), append([]diagnose.Transfer{}, p.board.Slowest(id)...)}
}
