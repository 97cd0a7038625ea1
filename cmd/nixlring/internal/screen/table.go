// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// tableChrome is the number of lines on the page that aren't agents: two at the top, a
// blank one, the titles, and two at the bottom.
const tableChrome = 6

// table draws the page of all agents.
func (m *Model) table() string {
	var b strings.Builder
	m.head(&b)
	m.totals(&b)
	b.WriteString("\n")
	list := m.layout()
	m.titles(&b, list)
	body := m.body()
	end := min(m.offset+body, len(m.rows))
	lines := 0
	for _, r := range m.rows[m.offset:end] {
		m.row(&b, r, list)
		lines++
	}
	if len(m.rows) == 0 {
		lines += m.empty(&b, body)
	}
	b.WriteString(strings.Repeat("\n", max(0, body-lines)))
	m.status(&b)
	m.keys(&b, [][2]string{
		{"↑↓", "select"},
		{"enter", "details"},
		{"←→", "sort"},
		{"/", "filter"},
		{"?", "help"},
		{"q", "quit"},
		{"!", "problems only"},
		{"r", "reverse"},
		{"space", "pause"},
	})
	return b.String()
}

// head draws the first line: the directory, and how rates are measured.
func (m *Model) head(b *strings.Builder) {
	left := " " + strong.in("nixlring top") + "  " + units.Printable(m.cfg.Name)
	right := fmt.Sprintf("rates over %v", m.cfg.Window)
	if at := m.board.At(); !at.IsZero() {
		right += " · " + at.Format("15:04:05")
	}
	right = dim.in(right)
	if m.paused {
		right = warn.in("paused") + dim.in(" · ") + right
	}
	m.line(b, left, right+" ")
}

// totals draws the second line: the sum over all agents.
func (m *Model) totals(b *strings.Builder) {
	s := m.board.Sum()
	sep := dim.in(" · ")
	agents := strong.in(units.Count(uint64(s.Agents))) + " agents"
	if s.Agents == 1 {
		agents = strong.in("1") + " agent"
	}
	left := " " + agents
	if s.WithProblems > 0 {
		left += sep + warn.in(fmt.Sprintf("%d with problems", s.WithProblems))
	}
	left += sep + "out " + strong.in(units.Throughput(s.Out)) + sep + "in " + strong.in(units.Throughput(s.In)) +
		sep + strong.in(units.Rate(s.Completed)) + " transfers/s"
	if p50 := fleet.Duration(s.Times.Quantile(0.5)); p50 != "" {
		left += sep + "p50 " + strong.in(p50) + sep + "p99 " + strong.in(fleet.Duration(s.Times.Quantile(0.99)))
	}
	if s.Failures > 0 {
		left += sep + warn.in(units.Rate(s.Failures)+" errors/s")
	}
	if s.Memory > 0 {
		left += sep + strong.in(units.Memory(s.Memory)) + " registered"
		if s.MemoryUnknown > 0 {
			left += fmt.Sprintf(" (%d unknown)", s.MemoryUnknown)
		}
	}
	m.line(b, left, "")
}

// line writes a line with left-aligned text and, if it fits, right-aligned text.
func (m *Model) line(b *strings.Builder, left, right string) {
	n, k := ansi.StringWidth(left), ansi.StringWidth(right)
	switch {
	case n > m.width:
		b.WriteString(ansi.Truncate(left, m.width, "…"))
	case right == "" || n+k+1 > m.width:
		b.WriteString(left)
	default:
		b.WriteString(left + strings.Repeat(" ", m.width-n-k) + right)
	}
	b.WriteString("\n")
}

// titles draws the titles of the columns.
func (m *Model) titles(b *strings.Builder, list []column) {
	b.WriteString(strings.Repeat(" ", gutter))
	for i, c := range list {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", m.gap()))
		}
		title, p := c.title, dim
		if c.key == m.key {
			p = strong
			arrow := "▲"
			if descending(m.key) != m.reverse {
				arrow = "▼"
			}
			if c.right() {
				title = arrow + title
			} else {
				title += arrow
			}
		}
		p.put(b, fit(title, c.width, c.right()))
	}
	b.WriteString("\n")
}

// row draws the line of one agent. If it has a problem, an exclamation mark is before its
// name, which also works without colors and on narrow screens.
func (m *Model) row(b *strings.Builder, r *fleet.Row, list []column) {
	var line strings.Builder
	selected := r.ID == m.selected
	put := func(p paint, s string) {
		if selected {
			p = plain // the whole line is painted below
		}
		p.put(&line, s)
	}
	mark, p := "  ", plain
	if r.Place > 0 {
		mark, p = "! ", severity(r.Worst())
	}
	put(p, mark)
	for i, c := range list {
		if i > 0 {
			put(plain, strings.Repeat(" ", m.gap()))
		}
		text, p := c.text(r, c.width)
		put(p, fit(text, c.width, c.right()))
	}
	p = plain
	if selected {
		p = marked
	}
	p.put(b, line.String())
	b.WriteString("\n")
}

// empty explains why there are no rows, in at most body lines.
func (m *Model) empty(b *strings.Builder, body int) (lines int) {
	text := m.cfg.Empty
	switch err := m.board.Err(); {
	case m.board.At().IsZero() && err == nil:
		text = "loading…"
	case len(m.board.Rows()) > 0 && m.filter == "":
		text = "no agent has problems; esc shows all"
	case len(m.board.Rows()) > 0 && m.problems:
		text = fmt.Sprintf("no agent with problems has a name that contains %q; esc shows all", m.filter)
	case len(m.board.Rows()) > 0:
		text = fmt.Sprintf("no agent has a name that contains %q; esc shows all", m.filter)
	case err != nil:
		text = err.Error()
	}
	b.WriteString("\n")
	lines = 1
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for part := range strings.SplitSeq(ansi.Wordwrap(line, max(20, m.width-4), ""), "\n") {
			if lines < body {
				b.WriteString("  " + part + "\n")
				lines++
			}
		}
	}
	return lines
}

// status draws the line before the last one: the filter while it is typed, a warning, or a
// hint.
func (m *Model) status(b *strings.Builder) {
	switch {
	case m.typing:
		b.WriteString(" filter: " + units.Printable(m.filter) + marked.in(" ") + "\n")
		return
	case len(m.board.Notes()) > 0:
		m.line(b, " "+warn.in(units.Printable(m.board.Notes()[0])), "")
		return
	}
	left := " top doesn't consume events; press ? for its limits"
	if m.filter != "" || m.problems {
		left = fmt.Sprintf(" %d of %d agents", len(m.rows), len(m.board.Rows()))
		if m.filter != "" {
			left += fmt.Sprintf(", name contains %q", m.filter)
		}
		if m.problems {
			left += ", with problems"
		}
		left += "; esc shows all"
	}
	right := ""
	if body := m.body(); len(m.rows) > body {
		right = fmt.Sprintf("%d–%d of %d ", m.offset+1, min(m.offset+body, len(m.rows)), len(m.rows))
	}
	m.line(b, dim.in(left), dim.in(right))
}

// keys draws the last line, with the keys that fit. The help page lists all keys.
func (m *Model) keys(b *strings.Builder, list [][2]string) {
	line := ""
	for _, k := range list {
		next := line + " " + marked.in(" "+k[0]+" ") + " " + k[1] + " "
		if ansi.StringWidth(next) > m.width {
			break
		}
		line = next
	}
	b.WriteString(line)
}
