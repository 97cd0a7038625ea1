// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/units"
)

// tableChrome is the lines of the table's page that aren't agents: two of
// head, a blank one, the titles, and two of foot.
const tableChrome = 6

// table is the page of all agents.
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

// head is the first line: where, and how the numbers come about.
func (m *Model) head(b *strings.Builder) {
	left := " " + strong.in("nixlring top") + "  " + render.Printable(m.cfg.Directory)
	right := fmt.Sprintf("rates over %v · every %v · ", m.cfg.Window, m.cfg.Interval)
	if at := m.board.At(); !at.IsZero() {
		right += at.Format("15:04:05")
	}
	right = dim.in(right)
	if m.paused {
		right = warn.in("paused") + dim.in(" · ") + right
	}
	m.line(b, left, right+" ")
}

// totals is the second line: what all agents do together.
func (m *Model) totals(b *strings.Builder) {
	s := m.board.Sum()
	sep := dim.in(" · ")
	agents := strong.in(units.Count(uint64(s.Agents))) + " agents"
	if s.Agents == 1 {
		agents = strong.in("1") + " agent"
	}
	left := " " + agents
	if s.Troubled > 0 {
		left += sep + warn.in(fmt.Sprintf("%d with problems", s.Troubled))
	}
	left += sep + "out " + strong.in(units.Throughput(s.Out)) + sep + "in " + strong.in(units.Throughput(s.In)) +
		sep + strong.in(units.Rate(s.Transfers)) + " transfers/s"
	if p50 := top.Duration(s.P50); s.Agents > 0 && p50 != "" {
		left += sep + "p50 " + strong.in(p50) + sep + "p99 " + strong.in(top.Duration(s.P99))
	}
	if s.Errors > 0 {
		left += sep + warn.in(units.Rate(s.Errors)+" errors/s")
	}
	if s.Memory > 0 {
		left += sep + strong.in(units.Memory(s.Memory)) + " registered"
		if s.Unseen > 0 {
			left += fmt.Sprintf(" (%d unknown)", s.Unseen)
		}
	}
	m.line(b, left, "")
}

// line writes a line, with text at both ends if there is room.
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

// titles is the line of the columns' names.
func (m *Model) titles(b *strings.Builder, list []column) {
	b.WriteString(strings.Repeat(" ", gutter))
	for i, c := range list {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		title, p := c.title, dim
		if c.key == m.key {
			p = strong
			arrow := "▲"
			if m.key.Falling() != m.reverse {
				arrow = "▼"
			}
			if c.right {
				title = arrow + title
			} else {
				title += arrow
			}
		}
		p.put(b, fit(title, c.width, c.right))
	}
	b.WriteString("\n")
}

// row is the line of one agent. A mark before its name says how bad it is, for
// where there are no colors and no room for notes.
func (m *Model) row(b *strings.Builder, r *top.Row, list []column) {
	var line strings.Builder
	selected := r.Path == m.selected
	put := func(p paint, s string) {
		if selected {
			p = plain // within one paint for all
		}
		p.put(&line, s)
	}
	mark, p := "  ", plain
	if worst := r.Worst(); worst >= top.Warn {
		mark, p = "! ", severity(worst)
	}
	put(p, mark)
	for i, c := range list {
		if i > 0 {
			put(plain, strings.Repeat(" ", gap))
		}
		text, p := c.cell(r, c.width)
		put(p, fit(text, c.width, c.right))
	}
	p = plain
	if selected {
		p = marked
	}
	p.put(b, line.String())
	b.WriteString("\n")
}

// empty says why there is nothing to see, in at most so many lines.
func (m *Model) empty(b *strings.Builder, body int) (lines int) {
	text := m.cfg.Empty(m.board.Left())
	switch trouble := m.board.Trouble(); {
	case m.board.At().IsZero():
		text = "looking…"
	case m.board.Sum().Agents > 0 && m.only:
		text = "no agent with a problem matches; esc shows all"
	case m.board.Sum().Agents > 0:
		text = fmt.Sprintf("no agent's name contains %q; esc shows all", m.filter)
	case trouble != nil:
		text = trouble.Error()
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

// status is the line before the last: the filter while it is typed, or what an
// operator may want to know.
func (m *Model) status(b *strings.Builder) {
	switch {
	case m.typing:
		b.WriteString(" filter: " + render.Printable(m.filter) + marked.in(" ") + "\n")
		return
	case m.board.Warning() != "":
		m.line(b, " "+warn.in(render.Printable(m.board.Warning())), "")
		return
	}
	left := " top takes no event from a ring; ? shows what it can't show"
	if m.filter != "" || m.only {
		left = fmt.Sprintf(" %d of %d agents", len(m.rows), m.board.Sum().Agents)
		if m.filter != "" {
			left += fmt.Sprintf(" with %q in their names", m.filter)
		}
		if m.only {
			left += ", those with problems"
		}
		left += "; esc shows all"
	}
	right := ""
	if body := m.body(); len(m.rows) > body {
		right = fmt.Sprintf("%d–%d of %d ", m.offset+1, min(m.offset+body, len(m.rows)), len(m.rows))
	}
	m.line(b, dim.in(left), dim.in(right))
}

// keys is the last line. What doesn't fit is in the help.
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
