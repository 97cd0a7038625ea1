// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Times.
const (
	// Interval is the time between two samples.
	Interval = 2 * time.Second
	// window is the time over which rates and quantiles are measured.
	window = 10 * time.Second
	// pointEvery is the time between two points of the history.
	pointEvery = 6 * time.Second
	// History is how long points are kept.
	History = 30 * time.Minute
	// processesEvery is the time between two searches for processes without telemetry, which
	// examine all processes.
	processesEvery = 30 * time.Second
)

// Config configures a [Page].
type Config struct {
	Name      string                         // what is watched, such as a directory
	Sample    func() top.Sample              // takes a sample
	Slowest   func(id string) []top.Transfer // safe for concurrent use
	Processes func() []diagnose.Process      // that use NIXL; may be nil
}

// Page is a page about some agents.
type Page struct {
	cfg   Config
	board *top.Board // used by add only
	ids   map[string]int
	next  int // ID of the next agent

	mu        sync.Mutex // guards the fields below
	processes []diagnose.Process
	frame     []byte               // the newest one
	agents    map[int]*top.Reading // by ID
	points    [][]byte             // oldest first
	columns   []column             // of the same times
	pointed   time.Time
	started   time.Time
	clients   map[*client]bool
}

// New returns a page without samples.
func New(cfg Config) *Page {
	return &Page{
		cfg: cfg, board: top.NewBoard(window, 1), ids: make(map[string]int),
		clients: make(map[*client]bool),
	}
}

// Run takes samples until ctx is done.
func (p *Page) Run(ctx context.Context) {
	var searching sync.WaitGroup
	defer searching.Wait()
	if p.cfg.Processes != nil {
		searching.Go(func() { p.search(ctx) })
	}
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		p.Add(p.cfg.Sample())
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// search looks for processes until ctx is done.
func (p *Page) search(ctx context.Context) {
	ticker := time.NewTicker(processesEvery)
	defer ticker.Stop()
	for {
		found := p.cfg.Processes()
		p.mu.Lock()
		p.processes = found
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Add adds a sample, and sends it to all browsers. It must not be called concurrently.
func (p *Page) Add(s top.Sample) {
	p.board.Add(s)
	p.identify()
	p.mu.Lock()
	if p.started.IsZero() && s.Failed == nil {
		p.started, p.pointed = s.At, s.At // the first sample has no rates
	}
	processes, due := p.processes, s.Failed == nil && s.At.Sub(p.pointed) >= pointEvery
	p.mu.Unlock()
	frame := event("frame", encode(p.newFrame(processes)))
	var point []byte
	var column column
	if due {
		point, column = encode(p.newPoint()), p.newColumn()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Failed == nil {
		p.agents = make(map[int]*top.Reading, len(s.Agents))
		for i := range s.Agents {
			p.agents[p.ids[s.Agents[i].ID]] = &s.Agents[i]
		}
	}
	if p.frame = frame; due {
		const most = int(History / pointEvery)
		p.points, p.pointed = append(p.points, point), s.At
		p.points = p.points[max(0, len(p.points)-most):]
		p.columns = append(p.columns, column)
		p.columns = slices.Delete(p.columns, 0, max(0, len(p.columns)-most))
		p.send(pointsEvent(point))
	}
	p.send(frame)
}

// identify gives each agent an ID, which is shorter than its path.
func (p *Page) identify() {
	rows := p.board.Rows()
	ids := make(map[string]int, len(rows))
	for i := range rows {
		id, ok := p.ids[rows[i].ID]
		if !ok {
			id = p.next
			p.next++
		}
		ids[rows[i].ID] = id
	}
	p.ids = ids
}
