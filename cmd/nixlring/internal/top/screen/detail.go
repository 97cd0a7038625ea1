// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// views is the number of views on an agent's page: histories, distributions and slowest
// transfers. The page shows as many of them as fit.
const views = 3

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
	all := [views]func(*strings.Builder, *top.Row){m.histories, m.distributions, m.slowest}
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
func (m *Model) facts(b *strings.Builder, r *top.Row) {
	sep := dim.in(" · ")
	parts := []string{
		strong.in(units.Printable(r.Name)),
		"layout " + r.Layout,
		fmt.Sprintf("ring of %s events", units.Count(uint64(max(r.Capacity, 0)))),
	}
	if name := r.ReaderName(); name != "" {
		reader := "read by " + units.Printable(name)
		if r.Lock.Name != "" {
			reader += fmt.Sprintf(" (pid %d)", r.Lock.PID)
		}
		parts = append(parts, reader)
	}
	switch {
	case r.MemoryUnknown:
		parts = append(parts, "registered memory unknown")
	case r.Memory > 0:
		parts = append(parts, units.Memory(r.Memory)+" registered")
	}
	last := "last event " + units.Age(r.Age) + " ago"
	if r.NoEvents {
		last = "no event for " + units.Age(r.Age) + " or more"
	}
	m.line(b, " "+strings.Join(append(parts, last), sep), "")
	if identity := r.Identity(); len(identity) > 0 {
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
func (m *Model) histories(b *strings.Builder, r *top.Row) {
	h := m.board.History(r.ID)
	const label, value = 18, 11
	width := min(max(10, m.width-label-2*value-5), top.DefaultHistory)
	for _, s := range []struct {
		name, now string
		series    []float64
		most      float64 // end of the scale; 0 for the highest value
		text      func(float64) string
		p         paint
	}{
		{"out", units.Throughput(r.Out), h.Out, 0, units.Throughput, good},
		{"in", units.Throughput(r.In), h.In, 0, units.Throughput, good},
		{"transfers/s", units.Rate(r.Transfers), h.Transfers, 0, units.Rate, good},
		{"transfer time p50", orDash(top.Duration(r.P50)), h.P50, 0, top.Duration, note},
		{"transfer time p99", orDash(top.Duration(r.P99)), h.P99, 0, top.Duration, note},
		{"throughput p50", orDash(units.Throughput(r.ThroughputP50)), h.Throughput, 0, units.Throughput, good},
		{"errors/s", units.Rate(r.Errors), h.Errors, 0, units.Rate, bad},
		{"ring fill", percent(r.Fill), h.Fill, 1, percent, warn},
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
func (m *Model) losses(b *strings.Builder, r *top.Row) {
	s := &r.Since
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
		count(s.Events, "events", plain),
		count(s.Transfers, "transfers", plain),
		amount(s.Out, "out"),
		amount(s.In, "in"),
		count(s.Restarts, "restarts", note),
	}, sep), "")
	m.line(b, " "+strong.in(fit("lost", 12, false))+strings.Join([]string{
		count(s.Saturations, "times full", bad),
		count(s.Torn, "torn groups", bad),
		count(s.Dropped, "dropped by the agent", bad),
		count(s.Missed, "observation gaps", warn),
	}, sep), "")
	var failures []string
	for _, f := range r.Failures {
		failures = append(failures, warn.in(units.Count(f.Count)+" "+f.Status))
	}
	if len(failures) == 0 {
		failures = []string{dim.in("none")}
	}
	m.line(b, " "+strong.in(fit("errors", 12, false))+strings.Join(failures, sep), "")
}
