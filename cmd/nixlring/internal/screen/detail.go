// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// views is the number of views on an agent's page: histories and slowest transfers. The page shows as many of
// them as fit.
const views = 2

// detail draws the page of one agent.
func (m *Model) detail() string {
	r := m.board.Row(m.selected)
	if r == nil {
		return m.table()
	}
	var b strings.Builder
	m.head(&b)
	m.facts(&b, r)
	b.WriteString("\n")
	m.losses(&b, r)
	all := [views]func(*strings.Builder, *fleet.Row){m.histories, m.slowest}
	for _, view := range all[m.view:] {
		b.WriteString("\n")
		view(&b, r)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	body := max(1, m.height-2)
	if len(lines) > body {
		lines = lines[:body]
	}
	b.Reset()
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	b.WriteString(strings.Join(lines, "\n"))
	b.WriteString(strings.Repeat("\n", body-len(lines)+1))
	m.line(&b, dim.in(" for processes and advice, run: nixlring inspect "+units.Printable(r.Path)), "")
	m.keys(&b, [][2]string{
		{"esc", "all agents"},
		{"↑↓", "other agent"},
		{"tab", "next view"},
		{"space", "pause"},
		{"?", "help"},
		{"q", "quit"},
	})
	return b.String()
}

// facts draws the properties and problems of an agent.
func (m *Model) facts(b *strings.Builder, r *fleet.Row) {
	sep := dim.in(" · ")
	parts := []string{
		strong.in(units.Printable(r.Name)),
		"layout " + r.Layout,
	}
	if r.Ring != nil {
		parts = append(parts, fmt.Sprintf("ring of %s events", units.Count(uint64(max(r.Ring.Capacity, 0)))))
	}
	if name := r.Consumer(); name != "" {
		consumer := "drained by " + units.Printable(name)
		if c := r.Ring.Consumer; c != nil {
			consumer += fmt.Sprintf(" (pid %d)", c.PID)
		}
		parts = append(parts, consumer)
	}
	switch {
	case r.Memory == nil:
		parts = append(parts, "registered memory unknown")
	case *r.Memory > 0:
		parts = append(parts, units.Memory(*r.Memory)+" registered")
	}
	last := "last event " + units.Age(r.Age) + " ago"
	if r.NoEvents {
		last = "no event for " + units.Age(r.Age) + " or more"
	}
	m.line(b, " "+strings.Join(append(parts, last), sep), "")
	if identity := fleet.Where(r.Agent); len(identity) > 0 {
		for i := range identity {
			identity[i] = units.Printable(identity[i])
		}
		m.line(b, " "+strings.Join(identity, sep), "")
	}
	var notes []string
	for _, p := range r.Problems {
		notes = append(notes, severity(p.Severity).in(p.Text))
	}
	if len(notes) > 0 {
		m.line(b, " "+strings.Join(notes, sep), "")
	}
}

// histories draws a line for each series.
func (m *Model) histories(b *strings.Builder, r *fleet.Row) {
	h := m.board.History(r.ID)
	const label, value = 18, 11
	width := min(max(10, m.width-label-2*value-5), fleet.DefaultHistory)
	for _, s := range []struct {
		name, now string
		series    []float64
		most      float64 // end of the scale; 0 for the highest value
		text      func(float64) string
		p         paint
	}{
		{"out", units.Throughput(r.Out), h.Out, 0, units.Throughput, good},
		{"in", units.Throughput(r.In), h.In, 0, units.Throughput, good},
		{"transfers/s", units.Rate(r.Completed), h.Completed, 0, units.Rate, good},
		{"transfer time p50", orDash(fleet.Duration(r.P50)), h.P50, 0, fleet.Duration, note},
		{"transfer time p99", orDash(fleet.Duration(r.P99)), h.P99, 0, fleet.Duration, note},
		{"throughput p50", orDash(units.Throughput(r.ThroughputP50)), h.Throughput, 0, units.Throughput, good},
		{"errors/s", units.Rate(r.Failures), h.Failures, 0, units.Rate, bad},
		{"ring fill", percent(r.Fill()), h.Fill, 1, percent, warn},
	} {
		most := s.most
		if most == 0 {
			most = highest(s.series, width)
		}
		p := s.p
		if highest(s.series, width) == 0 {
			p = dim
		}
		b.WriteString(" " + fit(s.name, label, false) + strong.in(fit(s.now, value, true)) + "  ")
		p.put(b, spark(s.series, width, most))
		b.WriteString(" " + dim.in(fit("≤ "+s.text(most), value, false)))
		b.WriteString("\n")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// losses draws what was observed, lost and failed since the agent was first seen.
func (m *Model) losses(b *strings.Builder, r *fleet.Row) {
	from, both, before := r.First, r.Both(), r.First.Both()
	was, now := cmp.Or(from.Ring, &diagnose.Ring{}), cmp.Or(r.Ring, &diagnose.Ring{})
	sep := dim.in(" · ")
	count := func(n uint64, name string, p paint) string {
		if n == 0 {
			p = dim
		}
		return p.in(units.Count(n) + " " + name)
	}
	amount := func(n uint64, name string) string {
		if n == 0 {
			return dim.in("0 B " + name)
		}
		return units.Bytes(n) + " " + name
	}
	m.line(b, " "+strong.in(fit("seen", 12, false))+strings.Join([]string{
		count(r.Events-from.Events, "events", plain),
		count(both.Transfers-before.Transfers, "transfers", plain),
		amount(r.Moved[0].Bytes-from.Moved[0].Bytes, "out"),
		amount(r.Moved[1].Bytes-from.Moved[1].Bytes, "in"),
		count(now.Restarts-was.Restarts, "restarts", note),
	}, sep), "")
	m.line(b, " "+strong.in(fit("lost", 12, false))+strings.Join([]string{
		count(now.Saturations-was.Saturations, "times full", bad),
		count(now.Torn-was.Torn, "incomplete transfers", bad),
		count(r.Dropped-from.Dropped, "dropped by the agent", bad),
		count(now.Misses-was.Misses, "observation gaps", warn),
	}, sep), "")
	var failures []string
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		failures = append(failures, warn.in(units.Count(r.Errors[kind])+" "+units.Printable(kind)))
	}
	if len(failures) == 0 {
		failures = []string{dim.in("none")}
	}
	m.line(b, " "+strong.in(fit("errors", 12, false))+strings.Join(failures, sep), "")
}

// slowest draws the list of the slowest transfers.
func (m *Model) slowest(b *strings.Builder, r *fleet.Row) {
	b.WriteString(" " + strong.in("slowest transfers") + dim.in(fmt.Sprintf("  last %v", units.Age(fleet.SlowestFor))) + "\n")
	list := m.board.Slowest(r.ID)
	if len(list) == 0 {
		b.WriteString(" " + dim.in("  none") + "\n")
		return
	}
	const cell = 12
	line := func(p paint, cells ...string) {
		b.WriteString(" ")
		for _, c := range cells {
			p.put(b, fit(c, cell, true))
		}
		b.WriteString("\n")
	}
	line(dim, "ENDED", "DIRECTION", "SIZE", "TIME", "POST", "THROUGHPUT")
	for i := range list {
		t := &list[i]
		direction := "out"
		if t.Receive {
			direction = "in"
		}
		line(plain, units.Age(m.board.At().Sub(t.Time))+" ago", direction, units.Memory(int64(min(t.Bytes, math.MaxInt64))),
			units.Duration(t.Took), units.Duration(t.Post), units.Throughput(t.Speed()))
	}
}
