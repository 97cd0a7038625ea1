// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// speeds are bounds of throughput. Histograms of rings have all of them: otherwise, some rows would be empty.
var speeds = func() (b []float64) {
	for decade := 1e3; decade < 1e13; decade *= 10 {
		b = append(b, decade, 2*decade, 5*decade)
	}
	return b
}()

// distributions draws the histograms of transfer time, throughput and post time, side by
// side if the screen is wide enough.
func (m *Model) distributions(b *strings.Builder, r *fleet.Row) {
	const least = 50
	beside := min(max(1, (m.width-2)/least), 3)
	width := (m.width - 2*beside) / beside
	throughput := distribution{
		name: "throughput", h: fleet.Counts(r.Window.Throughput, speeds), text: units.Throughput,
		facts: [][2]string{{"p10", units.Throughput(r.ThroughputP10)}, {"p50", units.Throughput(r.ThroughputP50)}},
	}
	if !math.IsNaN(r.Speed) {
		throughput.facts = append(throughput.facts, [2]string{"speed", units.Throughput(r.Speed)})
	}
	list := []distribution{
		{
			name: "transfer time", h: fleet.Counts(r.Window.Times, semconv.TransferDuration.Bounds), text: units.Duration,
			facts: [][2]string{{"p50", fleet.Duration(r.P50)}, {"p99", fleet.Duration(r.P99)}},
		},
		throughput,
		{
			name: "post time", h: fleet.Counts(r.Window.PostTimes, semconv.TransferDuration.Bounds), text: units.Duration,
			facts: [][2]string{{"p50", fleet.Duration(r.PostP50)}, {"p99", fleet.Duration(r.PostP99)}},
		},
	}
	for i := 0; i < len(list); i += beside {
		if i > 0 {
			b.WriteString("\n")
		}
		var columns [][]string
		for _, d := range list[i:min(i+beside, len(list))] {
			columns = append(columns, d.lines(width, m.cfg.Window))
		}
		writeBeside(b, columns, width)
	}
}

// writeBeside writes columns of lines side by side.
func writeBeside(b *strings.Builder, columns [][]string, width int) {
	for i := 0; ; i++ {
		line, more := "", false
		for n, column := range columns {
			if i < len(column) {
				line += strings.Repeat(" ", max(0, n*(width+2)-ansi.StringWidth(line))) + column[i]
				more = true
			}
		}
		if !more {
			return
		}
		b.WriteString(" " + line + "\n")
	}
}

// distribution is a histogram over the window.
type distribution struct {
	name  string
	h     diagnose.Histogram
	text  func(float64) string // formats a bound
	facts [][2]string          // names and values, such as quantiles
}

// lines returns the lines of the histogram, without empty buckets at its ends.
func (d *distribution) lines(width int, window time.Duration) []string {
	var total, most uint64
	first, last := len(d.h.Counts), -1
	for i, n := range d.h.Counts {
		if n > 0 {
			first, last = min(first, i), i
		}
		total += n
		most = max(most, n)
	}
	const label, count = 10, 9
	lines := []string{strong.in(d.name) + dim.in(fmt.Sprintf("  %s in %v", units.Count(total), window))}
	if total > 0 {
		var facts strings.Builder
		for _, fact := range d.facts {
			facts.WriteString(dim.in("  "+fact[0]+" ") + fact[1])
		}
		lines = append(lines, facts.String())
	}
	for i := first; i <= last; i++ {
		n, bound := d.h.Counts[i], "> "+units.Bare(d.text(d.h.Bounds[max(i, 1)-1]))
		if i < len(d.h.Bounds) {
			bound = "≤ " + units.Bare(d.text(d.h.Bounds[i]))
		}
		lines = append(lines, dim.in(fit(bound, label, true))+fit(units.Count(n), count, true)+"  "+
			note.in(bar(float64(n)/float64(most), max(5, width-label-count-5))))
	}
	return lines
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
