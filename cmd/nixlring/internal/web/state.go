// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
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

// text is a text of an agent, without control characters.
type text string

// MarshalJSON implements [json.Marshaler].
func (t text) MarshalJSON() ([]byte, error) { return json.Marshal(units.Printable(string(t))) }

// state is what the page shows, except for its history. Times are Unix times in ms.
type state struct {
	Name     text               `json:"name"`  // what is watched
	Start    int64              `json:"start"` // of the watch
	At       int64              `json:"at"`    // 0 without a frame
	Notes    []text             `json:"notes"`
	Findings []finding          `json:"findings"`
	Unjudged []diagnose.Check   `json:"unjudged"`
	Still    text               `json:"still"` // says that nothing moves, or is empty
	Rows     []row              `json:"rows"`  // the agents with problems first
	Times    diagnose.Histogram `json:"times"`
	Sizes    diagnose.Histogram `json:"sizes"`
}

// mostFindings limits the findings: a fleet may have one per agent.
const mostFindings = 100

type finding struct {
	Kind     diagnose.Kind     `json:"kind"`
	Severity diagnose.Severity `json:"severity"`
	Who      text              `json:"who"`    // an agent, or how many
	Agents   []string          `json:"agents"` // IDs
	Since    int64             `json:"since"`
	Short    text              `json:"short"`
	What     text              `json:"what"`
	Evidence []text            `json:"evidence"`
	Not      text              `json:"not"`
	Next     text              `json:"next"`
}

// row is an agent. Times are in seconds.
type row struct {
	ID        string            `json:"id"`
	Name      text              `json:"name"`
	Layout    string            `json:"layout"`
	Capacity  int               `json:"capacity"`
	Store     bool              `json:"store"`
	Alive     string            `json:"alive"`
	Consumer  text              `json:"consumer"`
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
	Problems  []text            `json:"problems"`
	Times     []uint64          `json:"times"` // the first bucket with transfers, and the counts from there on
}

// details is what only the page of an agent shows.
type details struct {
	ID      string     `json:"id"`
	Where   []text     `json:"where"`
	Slowest []transfer `json:"slowest"`
}

type transfer struct {
	At      int64  `json:"at"`
	Receive bool   `json:"receive"`
	Bytes   number `json:"bytes"`
	Took    number `json:"took"`
	Post    number `json:"post"`
	Speed   number `json:"speed"`
}

func texts(list []string) []text {
	out := make([]text, len(list)) // never null
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}

func (p *Page) newState() *state {
	b, sum := p.board, p.board.Sum()
	s := &state{
		Name: text(p.name), Notes: texts(b.Notes()), Findings: []finding{}, Rows: []row{},
		Unjudged: append([]diagnose.Check{}, b.Unjudged()...), Still: text(b.Still()), Times: sum.Times, Sizes: sum.Sizes,
	}
	if at := b.At(); !at.IsZero() {
		s.Start, s.At = p.begun.UnixMilli(), at.UnixMilli()
	}
	if err := b.Err(); err != nil {
		s.Notes = append(s.Notes, text(err.Error()))
	}
	list := append(diagnose.Processes(p.processes), b.Findings()...)
	diagnose.Sort(list)
	for i := range list[:min(len(list), mostFindings)] {
		s.Findings = append(s.Findings, newFinding(&list[i]))
	}
	for _, r := range b.Rows() {
		s.Rows = append(s.Rows, newRow(r))
	}
	return s
}

func newFinding(f *diagnose.Finding) finding {
	out := finding{
		Kind: f.Kind, Severity: f.Severity, Agents: []string{}, Evidence: texts(f.Evidence),
		Short: text(f.Short), What: text(f.What), Not: text(f.Not), Next: text(f.Next),
	}
	if !f.Since.IsZero() {
		out.Since = f.Since.UnixMilli()
	}
	for _, a := range f.Agents {
		out.Agents = append(out.Agents, a.ID)
	}
	switch len(f.Agents) {
	case 0:
	case 1:
		out.Who = text(f.Agents[0].Name)
	default:
		out.Who = text(strconv.Itoa(len(f.Agents)) + " agents")
	}
	return out
}

func newRow(r *fleet.Row) row {
	out := row{
		ID: r.ID, Name: text(r.Name), Layout: r.Layout, Store: r.Store, Consumer: text(r.Consumer()),
		Alive: map[diagnose.Up]string{diagnose.Yes: "running", diagnose.No: "exited"}[r.Up], Memory: number(math.NaN()), Age: number(r.Age.Seconds()),
		Speed: number(r.Speed), Out: number(r.Out), In: number(r.In), Transfers: number(r.Completed),
		P50: number(r.P50), P99: number(r.P99), Errors: number(r.Failures), Fill: number(r.Fill()), Problems: []text{}, Times: []uint64{},
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
		out.Problems = append(out.Problems, text(problem.Text))
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
	d := &details{ID: id, Where: texts(fleet.Where(r.Agent)), Slowest: []transfer{}}
	for _, t := range p.board.Slowest(id) {
		d.Slowest = append(d.Slowest, transfer{t.Time.UnixMilli(), t.Receive, number(t.Bytes), number(t.Took), number(t.Post), number(t.Speed())})
	}
	return d
}
