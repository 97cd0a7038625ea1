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
	key   string
	title string
	width int
	// rank is the order in which columns are removed on a narrow screen, highest first. Columns
	// with rank 0 are never removed.
	rank int
	// most is the maximum width if a cell needs more than width; 0 means width.
	most int

	number     func(*fleet.Row) float64 // nil for text
	descending bool                     // the default order

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

// Widths.
const (
	minName   = 10
	maxName   = 40
	minNotes  = 12
	notesPart = 7   // columns are removed until NOTES has what it needs, or this part of the screen
	narrow    = 100 // maximum width of a screen with one space between columns instead of two
	gutter    = 2   // before the first column
)

func columns() []column {
	return []column{
		{key: "name", title: "AGENT", width: minName, most: maxName, cell: nameCell},
		{key: "out", title: "OUT", width: 9, descending: true, number: func(r *fleet.Row) float64 { return r.Out }, format: throughput},
		{key: "in", title: "IN", width: 9, rank: 6, descending: true, number: func(r *fleet.Row) float64 { return r.In }, format: throughput},
		{key: "transfers", title: "XFER/S", width: 7, rank: 7, descending: true, number: func(r *fleet.Row) float64 { return r.Completed }, format: rate},
		{key: "p50", title: "P50", width: 7, rank: 4, descending: true, number: func(r *fleet.Row) float64 { return r.P50 }, format: duration},
		{key: "p99", title: "P99", width: 7, rank: 3, descending: true, number: func(r *fleet.Row) float64 { return r.P99 }, format: duration},
		{key: "post-p50", title: "POST50", width: 7, rank: 11, descending: true, number: func(r *fleet.Row) float64 { return r.PostP50 }, format: duration},
		{key: "post-p99", title: "POST99", width: 7, rank: 10, descending: true, number: func(r *fleet.Row) float64 { return r.PostP99 }, format: duration},
		{key: "throughput-p10", title: "TPUT10", width: 9, rank: 12, number: func(r *fleet.Row) float64 { return r.ThroughputP10 }, format: throughput},
		{key: "throughput-p50", title: "TPUT50", width: 9, rank: 9, number: func(r *fleet.Row) float64 { return r.ThroughputP50 }, format: throughput},
		{key: "speed", title: "SPEED", width: 9, rank: 1, number: func(r *fleet.Row) float64 { return r.Speed }, cell: speedCell},
		{key: "errors", title: "ERR/S", width: 6, rank: 2, descending: true, number: func(r *fleet.Row) float64 { return r.Failures }, cell: errorsCell},
		{key: "memory", title: "MEMORY", width: 8, rank: 8, descending: true, number: registered, cell: memoryCell},
		{key: "fill", title: "RING", width: 4, descending: true, number: func(r *fleet.Row) float64 { return r.Fill() }, cell: fillCell},
		{key: "age", title: "LAST", width: 6, rank: 5, descending: true, number: func(r *fleet.Row) float64 { return r.Age.Seconds() }, cell: ageCell},
		{key: "layout", title: "LAYOUT", width: 7, most: 8, rank: 13, cell: func(r *fleet.Row, _ int) (string, paint) { return r.Layout, dim }},
		{key: "alive", title: "ALIVE", width: 5, rank: 15, cell: aliveCell},
		{key: "reader", title: "READER", width: 7, most: 16, rank: 14, cell: readerCell},
		{key: ByProblems, title: "NOTES", width: minNotes, cell: notesCell},
	}
}

// ByProblems is the key of the notes: the agents with problems come first.
const ByProblems = "problems"

// Keys returns the columns that rows can be sorted by.
func Keys() (keys []string) {
	for _, c := range columns() {
		keys = append(keys, c.key)
	}
	return keys
}

// descending reports whether the default order by a key is descending.
func descending(key string) bool {
	return slices.ContainsFunc(columns(), func(c column) bool { return c.key == key && c.descending })
}

// Sort sorts the rows of a board by a key, and then by name.
func Sort(rows []*fleet.Row, key string, reverse bool) {
	list := columns()
	c := list[max(0, slices.IndexFunc(list, func(c column) bool { return c.key == key }))]
	if key == ByProblems { // the order of a board
		if reverse {
			slices.Reverse(rows)
		}
		return
	}
	sign := 1
	if c.descending != reverse {
		sign = -1
	}
	slices.SortStableFunc(rows, func(a, b *fleet.Row) int {
		return cmp.Or(c.compare(a, b, sign), fleet.Natural(a.Name, b.Name), strings.Compare(a.Path, b.Path))
	})
}

// compare compares two rows. NaN is last in both orders.
func (c *column) compare(a, b *fleet.Row, sign int) int {
	switch {
	case c.key == "name":
		return sign * fleet.Natural(a.Name, b.Name)
	case c.number == nil:
		x, _ := c.cell(a, c.most)
		y, _ := c.cell(b, c.most)
		return sign * strings.Compare(x, y)
	}
	x, y := c.number(a), c.number(b)
	if math.IsNaN(x) || math.IsNaN(y) {
		return cmp.Compare(y, x) // NaN is less than any number
	}
	return sign * cmp.Compare(x, y)
}

// Table returns the titles of all columns, and the cells of each row, as text. The title of a column of numbers
// begins with >.
func Table(rows []*fleet.Row) (titles []string, cells [][]string) {
	list := columns()
	for i := range list {
		c := &list[i]
		title := c.title
		if c.right() {
			title = ">" + title
		}
		titles = append(titles, title)
	}
	for _, r := range rows {
		var line []string
		for i := range list {
			text, _ := list[i].text(r, list[i].width)
			if list[i].key == ByProblems {
				text = allNotes(r)
			}
			line = append(line, strings.TrimSpace(text))
		}
		cells = append(cells, line)
	}
	return titles, cells
}

// layout returns the columns that fit on the screen, with their widths.
func (m *Model) layout() []column {
	list := columns()
	for i := range list {
		c := &list[i]
		if c.most == 0 {
			continue
		}
		for _, r := range m.rows {
			text, _ := c.text(r, c.most)
			c.width = min(max(c.width, ansi.StringWidth(text)), c.most)
		}
	}
	list[0].width = min(list[0].width, max(minName, m.width/6))
	notes := len(list) - 1
	for _, r := range m.rows {
		list[notes].width = max(list[notes].width, min(ansi.StringWidth(allNotes(r)), m.width/notesPart), stragglerWidth(r))
	}
	for m.columnsWidth(list) > m.width {
		worst := 0
		for i, c := range list {
			if c.rank > list[worst].rank {
				worst = i
			}
		}
		if list[worst].rank == 0 {
			break
		}
		list = append(list[:worst], list[worst+1:]...)
	}
	notes = len(list) - 1
	list[notes].width = max(0, list[notes].width+m.width-m.columnsWidth(list))
	return list
}

// stragglerWidth returns the width that the note about a straggler needs, because its number says how urgent it is.
func stragglerWidth(r *fleet.Row) int {
	if len(r.Findings) == 0 || r.Findings[0].Kind != diagnose.Straggler {
		return 0
	}
	return ansi.StringWidth(r.Problems[0].Text)
}

// gap returns the number of spaces between columns.
func (m *Model) gap() int {
	if m.width <= narrow {
		return 1
	}
	return 2
}

func (m *Model) columnsWidth(list []column) int {
	n := gutter - m.gap()
	for _, c := range list {
		n += m.gap() + c.width
	}
	return n
}

func nameCell(r *fleet.Row, _ int) (string, paint) {
	if r.Up == diagnose.No {
		return units.Printable(r.Name), dim
	}
	return units.Printable(r.Name), strong
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
	return percent(r.Fill()), p
}

func ageCell(r *fleet.Row, _ int) (string, paint) {
	s := units.Age(r.Age)
	if r.NoEvents {
		return ">" + s, dim
	}
	return s, plain
}

func aliveCell(r *fleet.Row, _ int) (string, paint) {
	if r.Up == diagnose.Yes {
		return r.Up.String(), plain
	}
	return r.Up.String(), dim
}

func readerCell(r *fleet.Row, _ int) (string, paint) {
	switch name := r.Consumer(); r.Draining {
	case diagnose.Drained:
		return units.Printable(name), plain
	case diagnose.Undecided:
		return "-", dim
	default:
		return units.Printable(name), warn
	}
}

// notesCell returns the problems that fit, the worst first, and the number of the others, in the color
// of the worst one.
func notesCell(r *fleet.Row, width int) (string, paint) {
	n := len(r.Problems)
	s := allNotes(r)
	for kept := n; kept > 0; kept-- {
		more := ""
		if kept < n {
			more = fmt.Sprintf(" +%d", n-kept)
		}
		s = join(r.Problems[:kept])
		if kept == 1 {
			s = ansi.Truncate(s, max(0, width-len(more)), "…")
		}
		if s += more; ansi.StringWidth(s) <= width {
			break
		}
	}
	return s, severity(r.Worst())
}

func allNotes(r *fleet.Row) string { return join(r.Problems) }

func join(problems []fleet.Problem) string {
	var parts []string
	for _, p := range problems {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, " · ")
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
