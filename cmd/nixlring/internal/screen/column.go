// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
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
	key   fleet.Key
	title string
	width int
	right bool
	// rank is the order in which columns are removed on a narrow screen, highest first. Columns
	// with rank 0 are never removed.
	rank int
	// most is the maximum width if a cell needs more than width; 0 means width.
	most int
	cell func(r *fleet.Row, width int) (string, paint)
}

// Widths.
const (
	minName   = 10
	maxName   = 40
	minNotes  = 12
	notesPart = 7   // columns are removed until NOTES has what it needs, or this part of the screen
	wide      = 160 // minimum width of a screen that has room for bars
	narrow    = 100 // maximum width of a screen with one space between columns instead of two
	gutter    = 2   // before the first column
	barWidth  = 8
)

func columns() []column {
	return []column{
		{key: fleet.ByName, title: "AGENT", width: minName, most: maxName, cell: nameCell},
		{key: fleet.ByOut, title: "OUT", width: 9, right: true, cell: of(throughput, func(r *fleet.Row) float64 { return r.Out })},
		{key: fleet.ByIn, title: "IN", width: 9, right: true, rank: 6, cell: of(throughput, func(r *fleet.Row) float64 { return r.In })},
		{key: fleet.ByTransfers, title: "XFER/S", width: 7, right: true, rank: 7, cell: of(rate, func(r *fleet.Row) float64 { return r.Completed })},
		{key: fleet.ByP50, title: "P50", width: 7, right: true, rank: 4, cell: of(duration, func(r *fleet.Row) float64 { return r.P50 })},
		{key: fleet.ByP99, title: "P99", width: 7, right: true, rank: 3, cell: of(duration, func(r *fleet.Row) float64 { return r.P99 })},
		{key: fleet.ByPostP50, title: "POST50", width: 7, right: true, rank: 11, cell: of(duration, func(r *fleet.Row) float64 { return r.PostP50 })},
		{key: fleet.ByPostP99, title: "POST99", width: 7, right: true, rank: 10, cell: of(duration, func(r *fleet.Row) float64 { return r.PostP99 })},
		{key: fleet.ByThroughputP10, title: "TPUT10", width: 9, right: true, rank: 12, cell: of(throughput, func(r *fleet.Row) float64 { return r.ThroughputP10 })},
		{key: fleet.ByThroughputP50, title: "TPUT50", width: 9, right: true, rank: 9, cell: of(throughput, func(r *fleet.Row) float64 { return r.ThroughputP50 })},
		{key: fleet.BySpeed, title: "SPEED", width: 9, right: true, rank: 1, cell: speedCell},
		{key: fleet.ByErrors, title: "ERR/S", width: 6, right: true, rank: 2, cell: func(r *fleet.Row, _ int) (string, paint) {
			s, p := rate(r.Failures)
			if r.Failures > 0 {
				p = warn
			}
			return s, p
		}},
		{key: fleet.ByMemory, title: "MEMORY", width: 8, right: true, rank: 8, cell: memoryCell},
		{key: fleet.ByFill, title: "RING", width: 4, right: true, cell: fillCell},
		{key: fleet.ByAge, title: "LAST", width: 6, right: true, rank: 5, cell: ageCell},
		{key: fleet.ByLayout, title: "LAYOUT", width: 7, most: 8, rank: 13, cell: func(r *fleet.Row, _ int) (string, paint) {
			return r.Layout, dim
		}},
		{key: fleet.ByAlive, title: "ALIVE", width: 5, rank: 15, cell: aliveCell},
		{key: fleet.ByReader, title: "READER", width: 7, most: 16, rank: 14, cell: readerCell},
		{key: fleet.ByProblems, title: "NOTES", width: minNotes, cell: notesCell},
	}
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
			text, _ := c.cell(r, c.most)
			c.width = min(max(c.width, ansi.StringWidth(text)), c.most)
		}
	}
	list[0].width = min(list[0].width, max(minName, m.width/6))
	notes := len(list) - 1
	for _, r := range m.rows {
		list[notes].width = max(list[notes].width, min(ansi.StringWidth(allNotes(r)), m.width/notesPart), stragglerWidth(r))
	}
	if m.width >= wide {
		list[slices.IndexFunc(list, func(c column) bool { return c.key == fleet.ByFill })].width = barWidth + 5
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

// of returns a cell with a formatted number.
func of(format func(float64) (string, paint), number func(*fleet.Row) float64) func(*fleet.Row, int) (string, paint) {
	return func(r *fleet.Row, _ int) (string, paint) { return format(number(r)) }
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

func memoryCell(r *fleet.Row, _ int) (string, paint) {
	switch {
	case r.Memory == nil:
		return "?", dim
	case *r.Memory == 0:
		return "-", dim
	}
	return units.Memory(*r.Memory), plain
}

func fillCell(r *fleet.Row, width int) (string, paint) {
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
	percent := fmt.Sprintf("%3.0f%%", 100*r.Fill())
	if width < barWidth {
		return percent, p
	}
	return fit(bar(r.Fill(), barWidth), barWidth, false) + " " + percent, p
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
