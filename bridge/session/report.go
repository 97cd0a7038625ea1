// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// workersListed is the number of workers that WriteTo lists by default. A session
// may have several workers per layer.
const workersListed = 20

const counted = `Only "packets", "failed" and the success rate include failed packets. All times, and
all values per device, worker, layer, duration and interval, cover successful packets.
`

// WriteTo prints the report as text with bars of Unicode block characters. It
// implements [io.WriterTo].
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Session %s\n", printable(r.Path))
	if r.IncompleteLine > 0 {
		fmt.Fprintf(&b, "\nNote: the row on line %d is incomplete; it and everything after it were skipped.\n", r.IncompleteLine)
	}
	if r.Summary.TotalPackets == 0 {
		fmt.Fprintf(&b, "\nWarning: the file has no packets.\n")
	} else {
		fmt.Fprint(&b, "\n"+counted)
		r.overall(&b)
		r.shares(&b, "Devices", r.Devices, r.Devices)
		r.operations(&b)
		r.workers(&b)
		r.shares(&b, "Layers", r.Layers, r.Layers)
		r.durations(&b)
		r.timeline(&b)
		r.slowest(&b)
		r.failures(&b)
	}
	r.written(&b)
	return b.WriteTo(w)
}

func (r *Report) overall(b *bytes.Buffer) {
	s := &r.Summary
	t := newTable("Overall", "packets", "succeeded", "failed", "success rate", "time ms")
	t.add("session", number(s.TotalPackets), number(s.TotalPackets-s.FailedPackets), number(s.FailedPackets),
		percent(s.SuccessRate), ms(r.time()))
	t.write(b)
}

// time returns the total duration of the successful packets.
func (r *Report) time() time.Duration {
	var sum time.Duration
	for _, d := range r.Devices {
		sum += d.Time
	}
	return sum
}

func (r *Report) workers(b *bytes.Buffer) {
	listed := r.Workers
	if !r.AllWorkers {
		listed = listed[:min(len(listed), workersListed)]
	}
	r.shares(b, "Workers by time", r.Workers, listed)
}

// shares prints a table of the listed shares, relative to all. As in the summary,
// the share of packets is relative to all packets, including failed ones. Bars are
// relative to the longest time.
func (r *Report) shares(b *bytes.Buffer, heading string, all, listed []Share) {
	t := newTable(heading, "packets", "of all", "time ms", "of time", "avg ms", "")
	total := r.time()
	var longest time.Duration
	for _, s := range listed {
		longest = max(longest, s.Time)
	}
	row := func(s Share) {
		t.add(printable(s.Name), number(s.Packets), percent(share(s.Packets, r.Summary.TotalPackets)),
			ms(s.Time), percent(ratio(float64(s.Time), float64(total))), ms(average(s.Time, s.Packets)), bar(ratio(float64(s.Time), float64(longest))))
	}
	for _, s := range listed {
		row(s)
	}
	if more := all[len(listed):]; len(more) > 0 {
		rest := Share{Name: fmt.Sprintf("%d more", len(more))}
		for _, s := range more {
			rest.Packets += s.Packets
			rest.Time += s.Time
		}
		row(rest)
	}
	t.write(b)
}

func (r *Report) operations(b *bytes.Buffer) {
	t := newTable("Operations", "packets", "failed", "on cpu", "on igpu", "time ms", "of time", "avg ms", "min ms", "max ms", "")
	var longest float64
	for _, o := range r.Summary.Operations {
		longest = max(longest, o.TotalTimeMS)
	}
	total := milliseconds(r.time())
	for _, o := range r.Summary.Operations {
		shortest := "-"
		if o.MinTimeMS != nil {
			shortest = decimal(*o.MinTimeMS)
		}
		t.add(printable(o.Name), number(o.Count), number(o.FailedCount), number(o.CPUCount), number(o.IGPUCount),
			decimal(o.TotalTimeMS), percent(ratio(o.TotalTimeMS, total)), decimal(o.AvgTimeMS), shortest, decimal(o.MaxTimeMS),
			bar(ratio(o.TotalTimeMS, longest)))
	}
	t.write(b)
}

func (r *Report) durations(b *bytes.Buffer) {
	var most int64
	for _, d := range r.Durations {
		most = max(most, d.Packets)
	}
	t := newTable("Durations", "packets", "")
	for _, d := range r.Durations {
		t.add("up to "+d.UpperBound.String(), number(d.Packets), bar(share(d.Packets, most)))
	}
	t.write(b)
}

func (r *Report) timeline(b *bytes.Buffer) {
	if len(r.Timeline) < 2 {
		return
	}
	var sum, longest time.Duration
	for _, i := range r.Timeline {
		longest = max(longest, i.Time)
	}
	t := newTable("Over time", "packets", "time ms", "total ms", "")
	for _, i := range r.Timeline {
		sum += i.Time
		t.add("from "+formatSeconds(i.Start.Seconds()), number(i.Packets), ms(i.Time), ms(sum), bar(ratio(float64(i.Time), float64(longest))))
	}
	t.write(b)
}

func (r *Report) slowest(b *bytes.Buffer) {
	t := newTable("Slowest packets", "packet", "layer", "time ms", "device")
	for _, row := range r.Slowest {
		t.add(printable(row.Operation), number(row.PacketID), strconv.Itoa(row.Layer), ms(row.Duration), printable(row.Device))
	}
	t.write(b)
}

func (r *Report) failures(b *bytes.Buffer) {
	t := newTable("Failed packets", "packet", "layer", "device", "error")
	for _, row := range r.Failures {
		t.add(printable(row.Operation), number(row.PacketID), strconv.Itoa(row.Layer), printable(row.Device), printable(row.Error))
	}
	t.write(b)
	if more := r.Summary.FailedPackets - int64(len(r.Failures)); more > 0 {
		fmt.Fprintf(b, "  %d more\n", more)
	}
}

func (r *Report) written(b *bytes.Buffer) {
	if r.WrittenErr != nil {
		fmt.Fprintf(b, "\nWarning: the summary can't be read: %s\n", printable(r.WrittenErr.Error()))
	}
	s := r.Written
	if s == nil {
		return
	}
	fmt.Fprintf(b, `
Summary of the session
  session       %s
  duration      %s
  tokens        %d generated, %d prompt
  throughput    %.2f tokens/s
  success rate  %s
  csv           %s
  json          %s
`, printable(s.SessionName), formatSeconds(s.TotalTimeS), s.TokensGenerated, s.PromptTokens, s.TokensPerSecond,
		percent(s.SuccessRate), printable(s.CSVLog), printable(s.JSONSummary))
}

// formatSeconds formats seconds in ms or s.
func formatSeconds(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3f ms", 1000*seconds)
	}
	return fmt.Sprintf("%.3f s", seconds)
}

func average(total time.Duration, packets int64) time.Duration {
	if packets == 0 {
		return 0
	}
	return total / time.Duration(packets)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func ms(d time.Duration) string { return decimal(milliseconds(d)) }

func decimal(ms float64) string { return fmt.Sprintf("%.3f", ms) }

// table is a text table. The first column and the columns device, error and ""
// (bars) are left-aligned; the others are right-aligned.
type table struct {
	rows [][]string
}

func newTable(names ...string) *table { return &table{rows: [][]string{names}} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table after an empty line, or nothing if it has no rows.
func (t *table) write(b *bytes.Buffer) {
	if len(t.rows) < 2 {
		return
	}
	names := t.rows[0]
	widths := make([]int, len(names))
	for r, row := range t.rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
			if c == 0 && r > 0 {
				widths[c] = max(widths[c], utf8.RuneCountInString(cell)+2) // indented
			}
		}
	}
	b.WriteByte('\n')
	for r, row := range t.rows {
		var line strings.Builder
		for c, cell := range row {
			if c == 0 && r > 0 {
				cell = "  " + cell
			}
			padding := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if c > 0 {
				line.WriteString("  ")
			}
			switch names[c] {
			case names[0], "device", "error", "":
				line.WriteString(cell + padding)
			default:
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// barWidth is the length of a full bar.
const barWidth = 20

// bar draws a share between 0 and 1, to an eighth of a character.
func bar(share float64) string {
	share = min(max(share, 0), 1) // a file may contain negative durations
	eighths := int(math.Round(share * barWidth * 8))
	if eighths == 0 && share > 0 {
		eighths = 1 // make a small share visible
	}
	b := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return b
}

// printable returns text that is safe to print on a terminal: quoted and escaped if
// it contains characters that a terminal would interpret.
func printable(s string) string {
	notPrint := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, notPrint) < 0 {
		return s
	}
	return strconv.Quote(s)
}
