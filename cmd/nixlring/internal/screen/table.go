// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// chrome is the number of lines that aren't agents: two at the top, a blank one, the titles, and two at the
// bottom.
const chrome = 6

// draw draws the screen.
func (m *Model) draw() string {
	lines := []string{m.head(), m.totals(), ""}
	columns := m.layout()
	switch {
	case m.help:
		lines = append(lines, strings.Split("  "+strings.ReplaceAll(Help, "\n", "\n  "), "\n")...)
	case len(m.rows) == 0:
		lines = append(lines, m.titles(columns), "")
		for line := range strings.SplitSeq(strings.TrimSpace(m.empty()), "\n") {
			lines = append(lines, strings.Split("  "+strings.ReplaceAll(ansi.Wordwrap(line, max(20, m.width-4), ""), "\n", "\n  "), "\n")...)
		}
	default:
		lines = append(lines, m.titles(columns))
		for _, r := range m.rows[m.offset:min(m.offset+m.body(), len(m.rows))] {
			lines = append(lines, m.row(r, columns))
		}
	}
	lines = slices.Concat(lines, make([]string, m.height))[:max(0, m.height-2)]
	lines = append(lines, m.status(), m.keys())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return strings.Join(lines[max(0, len(lines)-m.height):], "\n")
}

// sides returns a line with left-aligned text and, if it fits, right-aligned text.
func (m *Model) sides(left, right string) string {
	gap := m.width - ansi.StringWidth(left) - ansi.StringWidth(right)
	if gap < 1 {
		return left
	}
	return left + strings.Repeat(" ", gap) + right
}

var dot = dim.in(" · ")

// head returns the first line: the directory, and how rates are measured.
func (m *Model) head() string {
	right := fmt.Sprintf("rates over %v", m.cfg.Window)
	if at := m.board.At(); !at.IsZero() {
		right += " · " + at.Format("15:04:05")
	}
	right = dim.in(right)
	if m.paused {
		right = warn.in("paused") + dot + right
	}
	return m.sides(" "+strong.in("nixlring top")+"  "+m.cfg.Name, right+" ")
}

// totals returns the second line: the sum over all agents.
func (m *Model) totals() string {
	s := m.board.Sum()
	parts := []string{strong.in(units.Count(uint64(s.Agents))) + " agents"}
	if s.Agents == 1 {
		parts[0] = strong.in("1") + " agent"
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.WithProblems > 0 {
		add("%s", warn.in(fmt.Sprintf("%d with problems", s.WithProblems)))
	}
	add("out %s", strong.in(units.Throughput(s.Out)))
	add("in %s", strong.in(units.Throughput(s.In)))
	add("%s transfers/s", strong.in(units.Rate(s.Completed)))
	if p50 := fleet.Duration(s.Times.Quantile(0.5)); p50 != "" {
		add("p50 %s", strong.in(p50))
		add("p99 %s", strong.in(fleet.Duration(s.Times.Quantile(0.99))))
	}
	if s.Failures > 0 {
		add("%s", warn.in(units.Rate(s.Failures)+" errors/s"))
	}
	if s.Memory > 0 {
		unknown := ""
		if s.MemoryUnknown > 0 {
			unknown = fmt.Sprintf(" (%d unknown)", s.MemoryUnknown)
		}
		add("%s registered%s", strong.in(units.Memory(s.Memory)), unknown)
	}
	return " " + strings.Join(parts, dot)
}

// titles returns the titles of the columns. An arrow marks the one that rows are sorted by.
func (m *Model) titles(list []column) string {
	cells := make([]string, 0, len(list))
	for i := range list {
		c := &list[i]
		title, p := c.title, dim
		switch {
		case c.key() != m.key:
		case c.right():
			title, p = c.arrow()+title, strong
		default:
			title, p = title+c.arrow(), strong
		}
		cells = append(cells, p.in(fit(title, c.width, c.right())))
	}
	return strings.Repeat(" ", gutter) + strings.Join(cells, m.gap())
}

// row returns the line of one agent. If it has a problem, an exclamation mark is before its
// name, which also works without colors and on narrow screens.
func (m *Model) row(r *fleet.Row, list []column) string {
	cells := make([]string, 0, len(list))
	for i := range list {
		c := &list[i]
		text, p := c.text(r, c.width)
		cells = append(cells, p.in(fit(text, c.width, c.right())))
	}
	mark := strings.Repeat(" ", gutter)
	if r.Place > 0 {
		mark = severity(r.Worst()).in("! ")
	}
	return mark + strings.Join(cells, m.gap())
}

// empty explains why there are no rows.
func (m *Model) empty() string {
	switch notes, early := m.board.Notes(), m.board.At().IsZero(); {
	case early && len(notes) > 0:
		return notes[0]
	case early:
		return "loading…"
	case len(m.board.Rows()) > 0:
		return "no agent matches"
	}
	return m.cfg.Empty
}

// selection says which agents are shown.
func (m *Model) selection() string {
	var which []string
	if m.filter != "" {
		which = append(which, fmt.Sprintf("name contains %q", m.filter))
	}
	if m.problems {
		which = append(which, "with problems")
	}
	return fmt.Sprintf("%d of %d agents: %s; esc shows all", len(m.rows), len(m.board.Rows()), strings.Join(which, ", "))
}

// status returns the line before the last one: the filter while it is typed, a warning, or a hint.
func (m *Model) status() string {
	switch {
	case m.typing:
		return " filter: " + units.Printable(m.filter) + marked.in(" ") + dim.in("  enter keeps it, esc clears it")
	case len(m.board.Notes()) > 0 && !m.board.At().IsZero():
		return " " + warn.in(m.board.Notes()[0])
	}
	left, right := " nixlring why explains problems, nixlring inspect AGENT a ring", ""
	if m.filter != "" || m.problems {
		left = " " + m.selection()
	}
	if body := m.body(); len(m.rows) > body {
		right = fmt.Sprintf("%d–%d of %d ", m.offset+1, min(m.offset+body, len(m.rows)), len(m.rows))
	}
	return m.sides(dim.in(left), dim.in(right))
}

// keys returns the last line.
func (m *Model) keys() (line string) {
	for _, k := range [][2]string{
		{"↑↓", "scroll"},
		{"←→", "sort"},
		{"/", "filter"},
		{"!", "problems only"},
		{"space", "pause"},
		{"?", "columns"},
		{"q", "quit"},
	} {
		line += " " + marked.in(k[0]) + " " + k[1] + " "
	}
	return line
}
