// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// distributions draws the histograms of transfer time, throughput and post time, side by
// side if the screen is wide enough.
func (m *Model) distributions(b *strings.Builder, r *top.Row) {
	const least = 50
	beside := min(max(1, (m.width-2)/least), 3)
	width := (m.width - 2*beside) / beside
	throughput := distribution{
		name: "throughput", buckets: top.ThroughputBuckets(r.Window.Throughput), text: units.Throughput,
		facts: [][2]string{{"p10", units.Throughput(r.ThroughputP10)}, {"p50", units.Throughput(r.ThroughputP50)}},
	}
	if !math.IsNaN(r.Speed) {
		throughput.facts = append(throughput.facts, [2]string{"speed", units.Throughput(r.Speed)})
	}
	list := []distribution{
		{
			name: "transfer time", buckets: top.Buckets(r.Window.Duration), text: units.Duration,
			facts: [][2]string{{"p50", top.Duration(r.P50)}, {"p99", top.Duration(r.P99)}},
		},
		throughput,
		{
			name: "post time", buckets: top.Buckets(r.Window.Post), text: units.Duration,
			facts: [][2]string{{"p50", top.Duration(r.PostP50)}, {"p99", top.Duration(r.PostP99)}},
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
	name    string
	buckets []top.Bucket
	text    func(float64) string // formats a bound
	facts   [][2]string          // names and values, such as quantiles
}

// lines returns the lines of the histogram, without empty buckets at its ends.
func (d *distribution) lines(width int, window time.Duration) []string {
	var total, most uint64
	first, last := len(d.buckets), -1
	for i, k := range d.buckets {
		if k.Count > 0 {
			first, last = min(first, i), i
		}
		total += k.Count
		most = max(most, k.Count)
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
		k := d.buckets[i]
		bound := "≤ " + units.Bare(d.text(k.Bound))
		if math.IsInf(k.Bound, 1) {
			bound = "> " + units.Bare(d.text(d.buckets[i-1].Bound))
		}
		lines = append(lines, dim.in(fit(bound, label, true))+fit(units.Count(k.Count), count, true)+"  "+
			note.in(bar(float64(k.Count)/float64(most), max(5, width-label-count-5))))
	}
	return lines
}

// slowest draws the list of the slowest transfers.
func (m *Model) slowest(b *strings.Builder, r *top.Row) {
	b.WriteString(" " + strong.in("slowest transfers") + dim.in(fmt.Sprintf("  last %v", units.Age(top.SlowestFor))) + "\n")
	list := m.cfg.Slowest(r.ID)
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
		line(plain, units.Age(m.board.At().Sub(t.At))+" ago", direction, units.Memory(int64(min(t.Bytes, math.MaxInt64))),
			units.Duration(t.Took.Seconds()), units.Duration(t.Post.Seconds()), units.Throughput(t.Throughput()))
	}
}
