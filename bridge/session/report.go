// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// workersListed is the number of workers that WriteTo lists by default. A session
// may have several workers per layer.
const workersListed = 20

// WriteTo prints the report as text. It implements [io.WriterTo].
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Session %s\n", printable(r.Path))
	if r.SkippedRows > 0 {
		fmt.Fprint(&b, "\nWarning: the report doesn't include all rows.\n")
		for _, s := range r.Skipped {
			fmt.Fprintf(&b, "  line %d: %s\n", s.Line, printable(s.Reason))
		}
		more(&b, r.SkippedRows-int64(len(r.Skipped)))
	}
	if s := &r.Summary; s.TotalPackets == 0 {
		fmt.Fprint(&b, "\nWarning: the file has no packets.\n")
	} else {
		fmt.Fprintf(&b, "\nPackets: %d, failed: %d, success rate: %s. Times, devices, workers and layers cover successful packets only.\n",
			s.TotalPackets, s.FailedPackets, percent(s.SuccessRate))
		r.shares(&b, "Devices", r.Devices, len(r.Devices))
		r.operations(&b)
		listed := len(r.Workers)
		if !r.AllWorkers {
			listed = min(listed, workersListed)
		}
		r.shares(&b, "Workers by time", r.Workers, listed)
		r.shares(&b, "Layers", r.Layers, len(r.Layers))
		r.packets(&b)
	}
	r.written(&b)
	return b.WriteTo(w)
}

// shares prints the first shares of a list and the sum of the others. As in the summary,
// the share of packets is relative to all packets, including failed ones.
func (r *Report) shares(b *bytes.Buffer, heading string, all []Share, listed int) {
	if len(all) == 0 {
		return
	}
	shown := all[:listed:listed]
	if others := all[listed:]; len(others) > 0 {
		rest := Share{Name: fmt.Sprintf("%d more", len(others))}
		for _, s := range others {
			rest.Packets += s.Packets
			rest.Time += s.Time
		}
		shown = append(shown, rest)
	}
	t := newTable(b, heading, "packets", "of all", "time ms", "of time", "avg ms")
	for _, s := range shown {
		t.add(printable(s.Name), s.Packets, percent(share(s.Packets, r.Summary.TotalPackets)), milliseconds(s.Time),
			percent(ratio(milliseconds(s.Time), r.timeMS())), ratio(milliseconds(s.Time), float64(s.Packets)))
	}
	t.flush()
}

func (r *Report) operations(b *bytes.Buffer) {
	t := newTable(b, "Operations by time", "packets", "failed", "on cpu", "on igpu", "time ms", "of time", "avg ms", "min ms", "max ms")
	ops := r.Summary.Operations
	for _, name := range slices.SortedFunc(maps.Keys(ops), func(x, y string) int {
		return cmp.Or(cmp.Compare(ops[y].TotalTimeMS, ops[x].TotalTimeMS), cmp.Compare(x, y))
	}) {
		o := ops[name]
		var shortest any = "-"
		if o.MinTimeMS != nil {
			shortest = *o.MinTimeMS
		}
		t.add(printable(name), o.Count, o.FailedCount, o.CPUCount, o.IGPUCount, o.TotalTimeMS,
			percent(ratio(o.TotalTimeMS, r.timeMS())), o.AvgTimeMS, shortest, o.MaxTimeMS)
	}
	t.flush()
}

// timeMS returns the total duration of the successful packets.
func (r *Report) timeMS() (sum float64) {
	for _, d := range r.Devices {
		sum += milliseconds(d.Time)
	}
	return sum
}

func (r *Report) packets(b *bytes.Buffer) {
	if len(r.Slowest) > 0 {
		t := newTable(b, "Slowest packets", "packet", "layer", "device", "time ms")
		for _, row := range r.Slowest {
			t.add(printable(row.Operation), row.PacketID, row.Layer, printable(row.Device), milliseconds(row.Duration))
		}
		t.flush()
	}
	if len(r.Failures) > 0 {
		t := newTable(b, "Failed packets", "packet", "layer", "device", "error")
		for _, row := range r.Failures {
			t.add(printable(row.Operation), row.PacketID, row.Layer, printable(row.Device), printable(row.Error))
		}
		t.flush()
		more(b, r.Summary.FailedPackets-int64(len(r.Failures)))
	}
}

func more(b *bytes.Buffer, n int64) {
	if n > 0 {
		fmt.Fprintf(b, "  %d more\n", n)
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
  duration      %.6f s
  tokens        %d generated, %d prompt
  throughput    %.2f tokens/s
  success rate  %s
  csv           %s
  json          %s
`, printable(s.SessionName), s.TotalTimeS, s.TokensGenerated, s.PromptTokens, s.TokensPerSecond,
		percent(s.SuccessRate), printable(s.CSVLog), printable(s.JSONSummary))
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// table is a text table.
type table struct {
	b    *bytes.Buffer
	text *tabwriter.Writer
}

func newTable(b *bytes.Buffer, names ...string) *table {
	b.WriteByte('\n')
	t := &table{b, tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.text, strings.Join(names, "\t"))
	return t
}

// add prints a row. Numbers that aren't integers are milliseconds.
func (t *table) add(name string, cells ...any) {
	fmt.Fprint(t.text, "  ", name)
	for _, cell := range cells {
		format := "\t%v"
		if _, ok := cell.(float64); ok {
			format = "\t%.3f"
		}
		fmt.Fprintf(t.text, format, cell)
	}
	fmt.Fprintln(t.text)
}

func (t *table) flush() { _ = t.text.Flush() } // to a bytes.Buffer

// printable returns text that is safe to print on a terminal: quoted and escaped if
// it contains characters that a terminal would interpret.
func printable(s string) string {
	notPrint := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, notPrint) < 0 {
		return s
	}
	return strconv.Quote(s)
}
