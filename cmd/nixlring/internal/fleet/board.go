// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

const (
	// slowestFor is how long one of the slowest transfers is kept.
	slowestFor = time.Minute
	// remember and rememberWindows limit how long frames are kept for a diagnosis.
	remember, rememberWindows = 30 * time.Minute, 200
	// mostFrames bounds the number of frames that are kept per window, for short times between two frames.
	mostFrames = 16
)

// Board computes rows from the newest frames. It isn't safe for concurrent use.
type Board struct {
	window  time.Duration
	last    *diagnose.Frame
	frames  []*diagnose.Frame // oldest first; at least one window of them is whole
	sparse  int               // how many of them lack histograms
	members map[string]*member
	rows    []*Row // those with problems first, the worst first
	result  diagnose.Result
	since   map[diagnose.Key]time.Time // when findings began
	failed  string                     // why there has been no frame since the last one
}

// member is an agent over time.
type member struct {
	seen    time.Time           // when it was first seen
	wrote   time.Time           // when it last wrote events; zero if it didn't
	slowest []diagnose.Transfer // of the last minute
}

// NewBoard returns a board that computes rates over window.
func NewBoard(window time.Duration) *Board {
	return &Board{window: window, members: make(map[string]*member), last: &diagnose.Frame{}}
}

// Fail records that no frame could be taken. Everything stays as it was.
func (b *Board) Fail(err error) { b.failed = units.Printable(err.Error()) }

// Add adds a frame, which must be later than the one before. Agents that aren't in it are removed.
func (b *Board) Add(f *diagnose.Frame) {
	b.failed = ""
	members := make(map[string]*member, len(f.Agents))
	for i := range f.Agents {
		a := &f.Agents[i]
		m, before := b.members[a.ID], b.last.Agent(a.ID)
		if m == nil || before == nil || !before.Start.Equal(a.Start) { // new totals
			m, before = &member{seen: f.Time}, a
		}
		members[a.ID] = m
		m.add(f.Time, before, a)
	}
	b.members, b.last = members, f
	b.keep()
	b.diagnose()
	b.rows = b.rows[:0]
	for i := range f.Agents {
		b.rows = append(b.rows, b.row(&f.Agents[i]))
	}
	last := len(b.result.Findings) + 1
	slices.SortFunc(b.rows, func(x, y *Row) int {
		return cmp.Or(cmp.Compare(cmp.Or(x.Place, last), cmp.Or(y.Place, last)), Natural(x.Title(), y.Title()), strings.Compare(x.Path, y.Path))
	})
}

func (m *member) add(at time.Time, before, a *diagnose.Agent) {
	m.slowest = append(m.slowest, a.Transfers...)
	m.slowest = slices.DeleteFunc(m.slowest, func(t diagnose.Transfer) bool { return at.Sub(t.Time) >= slowestFor })
	if a.Events != before.Events {
		m.wrote = at
	}
}

// keep adds the newest frame to those of the diagnosis.
func (b *Board) keep() {
	at := b.last.Time
	if n := len(b.frames); n > 1 && at.Sub(b.frames[n-2].Time) < b.window/mostFrames {
		b.frames = b.frames[:n-1]
	}
	b.frames = append(b.frames, b.last)
	whole := max(b.window+b.window/2, min(3*b.window, 2*time.Minute))
	for b.sparse+1 < len(b.frames) && at.Sub(b.frames[b.sparse+1].Time) > whole {
		// Two of those that are kept must be in one window: a speed is measured between them.
		if b.sparse > 0 && b.frames[b.sparse+1].Time.Sub(b.frames[b.sparse-1].Time) <= b.window {
			b.frames = slices.Delete(b.frames, b.sparse, b.sparse+1)
			continue
		}
		for i := range b.frames[b.sparse].Agents {
			a := &b.frames[b.sparse].Agents[i]
			a.Times, a.Sizes, a.Transfers = diagnose.Histogram{}, diagnose.Histogram{}, nil
		}
		b.sparse++
	}
	for at.Sub(b.frames[0].Time) > min(remember, rememberWindows*b.window) && len(b.frames) > 2 {
		b.frames = slices.Delete(b.frames, 0, 1)
		b.sparse = max(0, b.sparse-1)
	}
}

// diagnose computes the findings. Speeds are those of the window, so that they equal the displayed ones,
// or those since the frame before if that is longer ago.
func (b *Board) diagnose() {
	at, window := b.last.Time, b.window
	if n := len(b.frames); n > 1 {
		window = max(window, at.Sub(b.frames[n-2].Time))
	}
	b.result = diagnose.Now(b.frames, diagnose.Live(window, at.Sub(b.frames[0].Time)))
	b.since = b.result.Begun(at, b.since)
}

// before returns the state that an agent's rates are computed from: that at the beginning of the window, or the
// first one.
func (b *Board) before(id string) (*diagnose.Agent, time.Time) {
	m := b.members[id]
	begin := b.last.Time.Add(-b.window)
	at := max(0, len(b.frames)-1)
	for at > 0 && b.frames[at].Time.After(begin) && b.frames[at-1].Time.Compare(m.seen) >= 0 {
		at--
	}
	return b.frames[at].Agent(id), b.frames[at].Time
}

// At returns the time of the newest frame, or zero.
func (b *Board) At() time.Time { return b.last.Time }

// Notes returns what the rows may lack, and why. Before the first frame, they say why there is none.
func (b *Board) Notes() []string {
	switch {
	case b.failed == "":
		return b.last.Notes
	case b.last.Time.IsZero():
		return []string{b.failed}
	}
	return append([]string{fmt.Sprintf("no data since %s: %s", b.last.Time.Format(time.TimeOnly), b.failed)}, b.last.Notes...)
}

// Rows returns all agents, those with problems first. They are valid until the next call of Add.
func (b *Board) Rows() []*Row { return b.rows }

// Row returns the agent with an ID, or nil.
func (b *Board) Row(id string) *Row {
	i := slices.IndexFunc(b.rows, func(r *Row) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return b.rows[i]
}

// Findings returns the findings of the newest frame, the worst first.
func (b *Board) Findings() []diagnose.Finding { return b.result.Findings }

// Checks returns what was compared.
func (b *Board) Checks() []diagnose.Check { return b.result.Checks }

// Still says that nothing moves, or is empty.
func (b *Board) Still() string { return b.result.Still }

// Slowest returns the slowest transfers of an agent in the last minute, the slowest first.
func (b *Board) Slowest(id string) []diagnose.Transfer {
	m := b.members[id]
	if m == nil {
		return nil
	}
	return slowest(slices.Clone(m.slowest))
}

// Sum is the sum over all agents.
type Sum struct {
	Agents, WithProblems         int
	Out, In, Completed, Failures float64            // per second
	Memory                       int64              // bytes of the agents whose memory is known
	MemoryUnknown                int                // number of agents whose memory is unknown
	Times, Sizes                 diagnose.Histogram // of the window
}

// Sum returns the sum over all agents.
func (b *Board) Sum() *Sum {
	s := &Sum{Agents: len(b.rows)}
	for _, h := range []struct {
		h      *diagnose.Histogram
		bounds []float64
	}{{&s.Times, timeBounds}, {&s.Sizes, semconv.TransferSize.Bounds}} {
		*h.h = diagnose.Histogram{Bounds: h.bounds, Counts: make([]uint64, len(h.bounds)+1)}
	}
	for _, r := range b.rows {
		if r.Place > 0 {
			s.WithProblems++
		}
		s.Out, s.In, s.Completed, s.Failures = s.Out+r.Out, s.In+r.In, s.Completed+r.Completed, s.Failures+r.Failures
		if r.Memory == nil {
			s.MemoryUnknown++
		} else {
			s.Memory += *r.Memory
		}
		s.Times.Add(r.Window.Times)
		s.Sizes.Add(r.Window.Sizes)
	}
	return s
}
