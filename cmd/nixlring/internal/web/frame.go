// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// number is encoded with four digits or as a small integer, and as null if it isn't finite.
type number float64

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

// text is encoded without characters that don't print.
type text string

func (t text) MarshalJSON() ([]byte, error) { return json.Marshal(units.Printable(string(t))) }

// hello is what a browser needs before the first frame.
type hello struct {
	Name    text      `json:"name"`
	Start   int64     `json:"start"`   // of the watch, Unix time in ms
	History float64   `json:"history"` // seconds
	Times   []float64 `json:"times"`   // bounds of the histograms of points, in seconds
	Sizes   []float64 `json:"sizes"`   // likewise, in bytes
}

// frame is the state of all agents at one time.
type frame struct {
	At       int64     `json:"at"` // Unix time in ms
	Excluded int       `json:"excluded"`
	Notes    []text    `json:"notes"` // about the samples, such as an error
	Findings []finding `json:"findings"`
	Unjudged []check   `json:"unjudged"`
	Rows     []row     `json:"rows"` // the agents with findings first
}

// mostFindings limits a frame's findings: a fleet may have one per agent.
const mostFindings = 100

// check is a check that doesn't cover all agents.
type check struct {
	Name   string          `json:"name"`
	Kinds  []diagnose.Kind `json:"kinds"`
	Reason string          `json:"reason"`
	Still  bool            `json:"still"` // no agent completed a transfer
}

type finding struct {
	Kind     diagnose.Kind     `json:"kind"`
	Severity diagnose.Severity `json:"severity"`
	Who      text              `json:"who"`    // an agent, or a job
	Agents   []int             `json:"agents"` // IDs; several if the finding is about a job
	Since    int64             `json:"since"`  // Unix time in ms, or 0
	Short    text              `json:"short"`
	What     text              `json:"what"`
	Evidence []text            `json:"evidence"`
	Not      text              `json:"not"`
	Next     text              `json:"next"`
}

// row is an agent. Times are in seconds.
type row struct {
	ID        int               `json:"id"`
	Path      text              `json:"path"`
	Name      text              `json:"name"`
	Layout    string            `json:"layout"`
	Capacity  int               `json:"capacity"`
	Store     bool              `json:"store"`
	Alive     string            `json:"alive"`
	Reader    text              `json:"reader"`
	Memory    number            `json:"memory"`
	Age       number            `json:"age"` // since the last event
	Speed     number            `json:"speed"`
	Out       number            `json:"out"`
	In        number            `json:"in"`
	Transfers number            `json:"transfers"`
	P50       number            `json:"p50"`
	P99       number            `json:"p99"`
	PostP50   number            `json:"post"`
	Errors    number            `json:"errors"`
	Fill      number            `json:"fill"`
	Severity  diagnose.Severity `json:"severity"` // of the worst finding; empty without one
	Problems  []text            `json:"problems"`
}

// point is a point of the history.
type point struct {
	At     int64      `json:"at"`     // Unix time in ms
	Agents [][]number `json:"agents"` // ID, speed, throughput, p50, p99, errors per second, fill
	Times  []uint64   `json:"times"`  // histograms of all agents
	Sizes  []uint64   `json:"sizes"`
}

// transfer is a slow transfer. Times are in seconds.
type transfer struct {
	At         int64  `json:"at"` // Unix time in ms
	Receive    bool   `json:"receive"`
	Bytes      number `json:"bytes"`
	Took       number `json:"took"`
	Post       number `json:"post"`
	Throughput number `json:"throughput"`
}

func (p *Page) newFrame(processes []diagnose.Process) *frame {
	b := p.board
	f := &frame{At: b.At().UnixMilli(), Excluded: b.Excluded(), Notes: []text{}, Findings: []finding{}, Unjudged: []check{}, Rows: []row{}}
	if err := b.Err(); err != nil {
		f.Notes = append(f.Notes, text(err.Error()))
	}
	for _, s := range []string{b.Unseen(), b.Warning()} {
		if s != "" {
			f.Notes = append(f.Notes, text(s))
		}
	}
	list := append(diagnose.Processes(processes), b.Findings()...)
	diagnose.Sort(list)
	rows := top.Filter(b.Rows(), "", false)
	top.Sort(rows, top.ByProblems, false)
	ids := make(map[diagnose.Agent]int, len(rows))
	for _, r := range rows {
		ids[r.Ring().Agent] = p.ids[r.ID]
	}
	for i := range list[:min(len(list), mostFindings)] {
		f.Findings = append(f.Findings, newFinding(&list[i], ids))
	}
	for _, c := range diagnose.Unjudged(b.Checks()) {
		f.Unjudged = append(f.Unjudged, check{c.Name, c.Kinds, c.Reason, c.Reason == diagnose.NothingMoves})
	}
	places := places(list)
	place := func(r *top.Row) int { return cmp.Or(places[r.Ring().Agent], len(list)+1) }
	slices.SortStableFunc(rows, func(a, b *top.Row) int { return cmp.Compare(place(a), place(b)) })
	for _, r := range rows {
		worst := diagnose.Severity("")
		if at := places[r.Ring().Agent]; at > 0 {
			worst = list[at-1].Severity
		}
		f.Rows = append(f.Rows, p.newRow(r, worst))
	}
	return f
}

// places returns for each agent which finding is the first about it, from 1 on. Information doesn't count.
func places(list []diagnose.Finding) map[diagnose.Agent]int {
	first := make(map[diagnose.Agent]int)
	for i := range list {
		for _, a := range list[i].Agents {
			if first[a] == 0 && list[i].Severity.AtLeast(diagnose.Warning) {
				first[a] = i + 1
			}
		}
	}
	return first
}

func newFinding(f *diagnose.Finding, ids map[diagnose.Agent]int) finding {
	out := finding{
		Kind: f.Kind, Severity: f.Severity, Agents: []int{}, Evidence: []text{},
		Short: text(f.Short), What: text(f.What), Not: text(f.Not), Next: text(f.Next),
	}
	if !f.Since.IsZero() {
		out.Since = f.Since.UnixMilli()
	}
	for _, a := range f.Agents {
		if id, ok := ids[a]; ok { // the agent may be gone
			out.Agents = append(out.Agents, id)
		}
	}
	for _, e := range f.Evidence {
		out.Evidence = append(out.Evidence, text(e))
	}
	switch {
	case len(f.Agents) == 1:
		out.Who = text(f.Agents[0].Name)
	case len(f.Agents) > 1:
		out.Who = text(strconv.Itoa(len(f.Agents)) + " agents")
	}
	return out
}

func (p *Page) newRow(r *top.Row, worst diagnose.Severity) row {
	out := row{
		ID: p.ids[r.ID], Path: text(r.Path), Name: text(r.Name),
		Layout: r.Layout, Capacity: r.Capacity, Store: r.Store, Alive: aliveText(r.Alive), Reader: text(r.ReaderName()),
		Memory: number(r.Memory), Age: number(r.Age.Seconds()),
		Speed: number(r.Speed), Out: number(r.Out), In: number(r.In), Transfers: number(r.Transfers),
		P50: number(r.P50), P99: number(r.P99), PostP50: number(r.PostP50), Errors: number(r.Errors), Fill: number(r.Fill),
		Severity: worst, Problems: []text{},
	}
	if r.MemoryUnknown {
		out.Memory = number(math.NaN())
	}
	for _, problem := range r.Problems {
		out.Problems = append(out.Problems, text(problem.Text))
	}
	return out
}

func aliveText(a procs.Alive) string {
	switch a {
	case procs.Yes:
		return "running"
	case procs.No:
		return "exited"
	default:
		return ""
	}
}

func (p *Page) newPoint() *point {
	sizes := make([]uint64, len(semconv.TransferSize.Bounds)+1)
	out := &point{At: p.board.At().UnixMilli(), Agents: [][]number{}, Times: p.board.Sum().Duration, Sizes: sizes}
	rows := p.board.Rows()
	for i := range rows {
		r := &rows[i]
		out.Agents = append(out.Agents, []number{
			number(p.ids[r.ID]), number(r.Speed), number(r.Out + r.In), number(r.P50), number(r.P99), number(r.Errors), number(r.Fill),
		})
		for n, count := range r.Window.Size {
			sizes[n] += count
		}
	}
	return out
}

// column has the histograms of the agents' transfer times at a point of the history, by ID.
type column struct {
	at    int64
	times map[int][]uint32
}

func (p *Page) newColumn() column {
	c := column{p.board.At().UnixMilli(), make(map[int][]uint32)}
	rows := p.board.Rows()
	for i := range rows {
		counts := rows[i].Window.Duration
		for len(counts) > 0 && counts[len(counts)-1] == 0 {
			counts = counts[:len(counts)-1]
		}
		times := make([]uint32, len(counts))
		for n, count := range counts {
			times[n] = uint32(min(count, math.MaxUint32))
		}
		c.times[p.ids[rows[i].ID]] = times
	}
	return c
}

func (p *Page) newHello(start time.Time) *hello {
	return &hello{
		Name: text(p.cfg.Name), Start: start.UnixMilli(), History: History.Seconds(),
		Times: top.Bounds(), Sizes: semconv.TransferSize.Bounds,
	}
}

// details is what only the page of an agent shows.
type details struct {
	Identity []text     `json:"identity"` // where it runs
	At       []int64    `json:"at"`       // Unix times in ms of Times
	Times    [][]uint32 `json:"times"`    // histograms of transfer times, without zeros at the end
	Slowest  []transfer `json:"slowest"`
}

// slowest returns the slowest transfers of an agent.
func (p *Page) slowest(id string) []transfer {
	list := []transfer{}
	for _, t := range p.cfg.Slowest(id) {
		list = append(list, transfer{
			At: t.At.UnixMilli(), Receive: t.Receive, Bytes: number(t.Bytes),
			Took: number(t.Took.Seconds()), Post: number(t.Post.Seconds()), Throughput: number(t.Throughput()),
		})
	}
	return list
}

// encode returns a value as JSON, on one line.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types above can always be encoded
	}
	return data
}

// event returns a server-sent event.
func event(name string, data []byte) []byte {
	return slices.Concat([]byte("event: "+name+"\ndata: "), data, []byte("\n\n"))
}

// pointsEvent returns a server-sent event with encoded points.
func pointsEvent(points ...[]byte) []byte {
	list := append([]byte{'['}, bytes.Join(points, []byte{','})...)
	return event("points", append(list, ']'))
}
