// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// write writes a recording, and returns its path.
func (r *Recorder) write(c *recording.Cause, all []history) (path string, err error) {
	f, err := r.directory.create(fileName(c))
	if err != nil {
		return "", err
	}
	z, err := r.cfg.Compress(f)
	if err != nil {
		return f.finish(err)
	}
	start := max(c.Time.Add(-Window).UnixMicro(), r.start.UnixMicro())
	w, err := recording.NewWriter(z, recording.Header{Tool: r.cfg.Tool, Host: r.cfg.Host, Start: time.UnixMicro(start), Cause: c})
	if err != nil {
		return f.finish(err)
	}
	err = writeHistories(w, start, sorted(all, c))
	return f.finish(cmp.Or(w.Close(), err))
}

// sorted returns at most as many agents as a recording can have: that of the cause, those with
// events, and others.
func sorted(all []history, c *recording.Cause) []history {
	rank := func(h *history) int {
		switch {
		case h.agent.Path == c.Path:
			return 0
		case len(h.chunks) > 0:
			return 1
		default:
			return 2
		}
	}
	slices.SortFunc(all, func(a, b history) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.agent.ID, b.agent.ID))
	})
	return all[:min(len(all), recording.MaxAgents)]
}

// player passes the entries of an agent to a recording.
type player struct {
	history
	reader   reader
	entry    entry
	layout   ringbuf.Layout
	capacity int
	open     bool
	number   int // of the agent in the recording; -1 before its ring is opened
}

// newPlayer returns a player at the agent's first entry since start.
func newPlayer(h history, start int64) *player {
	p := &player{history: h, layout: h.agent.layout, capacity: h.agent.capacity, open: h.agent.open, number: -1}
	if len(h.chunks) > 0 {
		first := h.chunks[0]
		p.layout, p.capacity, p.open = first.layout, first.capacity, first.open
	}
	for p.next() && p.entry.at < start {
		p.apply()
	}
	return p
}

// next reads the next entry. Without one, its time is the end of time.
func (p *player) next() bool {
	for !p.reader.next(&p.entry, p.layout) {
		if len(p.chunks) == 0 {
			p.entry.at = end
			return false
		}
		p.reader = reader{p.chunks[0].data, p.chunks[0].first}
		p.chunks = p.chunks[1:]
	}
	return true
}

const end = 1<<63 - 1

// apply applies an entry to the state of the ring.
func (p *player) apply() {
	switch p.entry.kind {
	case opened:
		p.layout, p.capacity, p.open = p.entry.layout, p.entry.capacity, true
	case closed:
		p.open = false
	}
}

// writer writes the entries of all agents in order of time.
type writer struct {
	out     *recording.Writer
	numbers int // of agents
	err     error
}

func writeHistories(out *recording.Writer, start int64, all []history) error {
	w := &writer{out: out}
	var players queue
	for _, h := range all {
		p := newPlayer(h, start)
		if p.open {
			w.open(start, p)
			if h.agent.cut >= start {
				w.check(out.State(time.UnixMicro(start), p.number, recording.Missed, whyCut))
			}
		}
		if p.entry.at != end {
			players = append(players, p)
		}
	}
	heap.Init(&players)
	for len(players) > 0 && w.err == nil {
		p := players[0]
		w.write(p)
		p.apply()
		if p.next() {
			heap.Fix(&players, 0)
		} else {
			heap.Pop(&players)
		}
	}
	return w.err
}

func (w *writer) check(err error) { w.err = cmp.Or(w.err, err) }

func (w *writer) open(at int64, p *player) {
	if p.number < 0 {
		p.number = w.numbers
		w.numbers++
	}
	what := live.Identify(&p.agent.Agent)
	about := recording.About{Name: what.Name, Path: what.Path, Attributes: what.Attributes}
	w.check(w.out.Open(time.UnixMicro(at), p.number, about, p.layout, p.capacity))
}

func (w *writer) write(p *player) {
	e := &p.entry
	at := time.UnixMicro(e.at)
	switch {
	case e.kind == opened:
		p.apply()
		w.open(e.at, p)
	case p.number < 0: // the ring isn't open
	case e.kind == events:
		b, err := ringbuf.MakeBatch(p.layout, e.events)
		if err == nil {
			err = w.out.Events(at, p.number, b)
		}
		w.check(err)
	default:
		w.check(w.out.State(at, p.number, states[e.kind], e.why))
	}
}

var states = map[byte]recording.State{missed: recording.Missed, full: recording.Full, closed: recording.Closed}

// queue is a heap of players by the time of their entries.
type queue []*player

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].entry.at < q[j].entry.at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(any)          {}
func (q *queue) Pop() any {
	*q = (*q)[:len(*q)-1]
	return nil
}
