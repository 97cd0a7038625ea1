// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// column is one column of the table.
type column struct {
	title string
	width int
	// rank is the order in which columns are removed on a narrow screen, highest first. Columns
	// with rank 0 are never removed.
	rank int
	// most is the maximum width if a cell needs more than width; 0 means width.
	most int

	number      func(*fleet.Row) float64 // nil for text
	lowestFirst bool                     // the order of numbers

	// A cell is a formatted number, or anything.
	format func(float64) (string, paint)
	cell   func(r *fleet.Row, width int) (string, paint)
}

// text returns the text of a cell.
func (c *column) text(r *fleet.Row, width int) (string, paint) {
	if c.cell != nil {
		return c.cell(r, width)
	}
	return c.format(c.number(r))
}

// right reports whether cells are aligned to the right.
func (c *column) right() bool { return c.number != nil }

// sorts reports whether rows can be sorted by the column.
func (c *column) sorts() bool { return c.number != nil || c.title == agent || c.title == notes }

// key is what rows are sorted by.
func (c *column) key() string { return strings.ToLower(c.title) }

// arrow shows the order.
func (c *column) arrow() string {
	if c.number == nil || c.lowestFirst {
		return "▲"
	}
	return "▼"
}

// Widths.
const (
	minName  = 10
	maxName  = 40
	minNotes = 12
	narrow   = 100 // maximum width of a screen with one space between columns instead of two
	gutter   = 2   // before the first column
)

// The titles of text columns that rows can be sorted by.
const (
	agent = "AGENT"
	notes = "NOTES"
)

// ByProblems is the key of an order in which agents with problems come first.
const ByProblems = "notes"

func columns() []column {
	return []column{
		{title: agent, width: minName, most: maxName, cell: nameCell},
		{title: "OUT", width: 9, number: func(r *fleet.Row) float64 { return r.Out }, format: throughput},
		{title: "IN", width: 9, rank: 6, number: func(r *fleet.Row) float64 { return r.In }, format: throughput},
		{title: "XFER/S", width: 7, rank: 7, number: func(r *fleet.Row) float64 { return r.Completed }, format: rate},
		{title: "P50", width: 7, rank: 4, number: func(r *fleet.Row) float64 { return r.P50 }, format: duration},
		{title: "P99", width: 7, rank: 3, number: func(r *fleet.Row) float64 { return r.P99 }, format: duration},
		{title: "SPEED", width: 9, rank: 1, lowestFirst: true, number: func(r *fleet.Row) float64 { return r.Speed }, cell: speedCell},
		{title: "ERR/S", width: 6, rank: 2, number: func(r *fleet.Row) float64 { return r.Failures }, cell: errorsCell},
		{title: "MEMORY", width: 8, rank: 8, number: registered, cell: memoryCell},
		{title: "RING", width: 5, number: func(r *fleet.Row) float64 { return r.Fill() }, cell: fillCell},
		{title: "LAST", width: 6, rank: 5, number: func(r *fleet.Row) float64 { return r.Age.Seconds() }, cell: ageCell},
		{title: "READER", width: 7, most: 16, rank: 9, cell: readerCell},
		{title: notes, width: minNotes, cell: notesCell},
	}
}

// Help explains the columns, in lines of up to 76 columns.
const Help = `OUT, IN   bytes per second that the agent wrote and read in completed
          transfers that it initiated
XFER/S    completed transfers per second
P50, P99  transfer time, until the application saw the completion
SPEED     mean throughput: bytes divided by the sum of the transfer times
ERR/S     failed operations per second, without those that were canceled
MEMORY    registered minus deregistered; ? if a consumer took registrations
          before top started
RING      peak fill since the last update; when the ring is full, the agent
          loses events; - for a store
LAST      time since the last event
READER    program that takes events from the ring; foreign is one that doesn't
          lock the ring: NIXL's telemetry_reader, pmdanixl, or a Collector in
          another PID namespace
NOTES     problems, the worst first; nixlring why explains them`

// Keys returns the columns that rows can be sorted by.
func Keys() (keys []string) {
	list := columns()
	for i := range list {
		if list[i].sorts() {
			keys = append(keys, list[i].key())
		}
	}
	return keys
}

// Sort sorts the rows of a board by one of [Keys], and then by name.
func Sort(rows []*fleet.Row, key string) {
	list := columns()
	c := &list[slices.IndexFunc(list, func(c column) bool { return c.key() == key })]
	if key == ByProblems { // the order of a board
		return
	}
	slices.SortStableFunc(rows, func(a, b *fleet.Row) int {
		if c.number == nil {
			return fleet.Natural(a.Title(), b.Title())
		}
		x, y := c.number(a), c.number(b)
		if c.lowestFirst {
			x, y = -x, -y
		}
		return cmp.Or(cmp.Compare(y, x), fleet.Natural(a.Title(), b.Title())) // NaN is less than any number, and so last
	})
}

// Table returns the titles of all columns, and the cells of each row, as text. The title of a column of numbers
// begins with >.
func Table(rows []*fleet.Row) (titles []string, cells [][]string) {
	list := columns()
	cells = make([][]string, len(rows))
	for i := range list {
		c := &list[i]
		title := c.title
		if c.right() {
			title = ">" + title
		}
		titles = append(titles, title)
		for n, r := range rows {
			const whole = 1 << 10 // for any text
			text, _ := c.text(r, whole)
			cells[n] = append(cells[n], text)
		}
	}
	return titles, cells
}

// layout returns the columns that fit on the screen, with their widths. NOTES is wide enough for the worst problem
// of each agent, because its number says how urgent it is.
func (m *Model) layout() []column {
	list := columns()
	last := &list[len(list)-1]
	for _, r := range m.rows {
		for i := range list {
			c := &list[i]
			if c.most > 0 {
				text, _ := c.text(r, c.most)
				c.width = min(max(c.width, ansi.StringWidth(text)), c.most)
			}
		}
		if r.Place > 0 {
			last.width = max(last.width, ansi.StringWidth(r.Problems[0].Text))
		}
	}
	list[0].width = min(list[0].width, max(minName, m.width/6))
	for m.room(list) < 0 {
		worst := 0
		for i := range list {
			if list[i].rank > list[worst].rank {
				worst = i
			}
		}
		if list[worst].rank == 0 {
			break
		}
		list = slices.Delete(list, worst, worst+1)
	}
	last = &list[len(list)-1]
	last.width = max(0, last.width+m.room(list))
	return list
}

// gap returns the space between columns.
func (m *Model) gap() string {
	if m.width <= narrow {
		return " "
	}
	return "  "
}

// room returns how much space columns leave on the screen.
func (m *Model) room(list []column) int {
	room := m.width - gutter + len(m.gap())
	for i := range list {
		room -= len(m.gap()) + list[i].width
	}
	return room
}

func nameCell(r *fleet.Row, _ int) (string, paint) {
	if r.Up == diagnose.No {
		return r.Title(), dim
	}
	return r.Title(), strong
}

func throughput(v float64) (string, paint) {
	if v == 0 || math.IsNaN(v) {
		return "-", dim
	}
	return units.Throughput(v), plain
}

func rate(v float64) (string, paint) {
	if v == 0 {
		return "-", dim
	}
	return units.Rate(v), plain
}

func duration(v float64) (string, paint) {
	if s := fleet.Duration(v); s != "" {
		return s, plain
	}
	return "-", dim
}

// speedCell is marked if a finding is about the speed.
func speedCell(r *fleet.Row, _ int) (string, paint) {
	s, p := throughput(r.Speed)
	for i := range r.Findings {
		switch r.Findings[i].Kind {
		case diagnose.Straggler, diagnose.Slower, diagnose.JobSlower:
			p = warn
		}
	}
	return s, p
}

func errorsCell(r *fleet.Row, _ int) (string, paint) {
	s, p := rate(r.Failures)
	if r.Failures > 0 {
		p = warn
	}
	return s, p
}

func registered(r *fleet.Row) float64 {
	if r.Memory == nil {
		return math.NaN()
	}
	return float64(*r.Memory)
}

func memoryCell(r *fleet.Row, _ int) (string, paint) {
	switch {
	case r.Memory == nil:
		return "?", dim
	case *r.Memory == 0:
		return "-", dim
	}
	return units.Memory(*r.Memory), plain
}

func fillCell(r *fleet.Row, _ int) (string, paint) {
	if r.Store {
		return "-", dim
	}
	p := good
	switch {
	case r.Fill() >= 0.9:
		p = bad
	case r.Fill() >= 0.5:
		p = warn
	case r.Fill() == 0:
		p = dim
	}
	const exact = 1e-9                                              // 0.29 is 29%
	return fmt.Sprintf("%.0f%%", math.Floor(100*r.Fill()+exact)), p // rounded down: only a full ring has 100%
}

func ageCell(r *fleet.Row, _ int) (string, paint) {
	s := units.Age(r.Age)
	if r.NoEvents {
		return ">" + s, dim
	}
	return s, plain
}

func readerCell(r *fleet.Row, _ int) (string, paint) {
	switch name := r.Consumer(); r.Draining {
	case diagnose.Drained:
		return name, plain
	case diagnose.Undecided:
		return "-", dim
	default:
		return name, warn
	}
}

// notesCell returns the problems that fit, the worst first, and the number of the others, in the color
// of the worst one.
func notesCell(r *fleet.Row, width int) (s string, p paint) {
	for kept := len(r.Problems); kept > 0; kept-- {
		var parts []string
		for _, problem := range r.Problems[:kept] {
			parts = append(parts, problem.Text)
		}
		more := ""
		if n := len(r.Problems) - kept; n > 0 {
			more = fmt.Sprintf(" +%d", n)
		}
		s = strings.Join(parts, " · ")
		if kept == 1 {
			s = ansi.Truncate(s, max(0, width-len(more)), "…")
		}
		if s += more; ansi.StringWidth(s) <= width {
			break
		}
	}
	return s, severity(r.Worst())
}

func severity(s diagnose.Severity) paint {
	switch s {
	case diagnose.Critical:
		return bad
	case diagnose.Warning:
		return warn
	case diagnose.Info:
		return note
	default:
		return plain
	}
}
