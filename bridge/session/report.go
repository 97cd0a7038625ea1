// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// String returns the report as text.
func (r *Report) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Session %s\n", units.Printable(r.Path))
	if r.SkippedRows > 0 {
		fmt.Fprintf(&b, "\nWarning: the report doesn't include all rows; skipped: %d\n", r.SkippedRows)
		for _, s := range r.Skipped {
			file := ""
			if s.Path != r.Path {
				file = " of " + units.Printable(s.Path)
			}
			fmt.Fprintf(&b, "  line %d%s: %s\n", s.Line, file, units.Printable(s.Reason))
		}
	}
	if s := &r.Summary; s.TotalPackets == 0 {
		fmt.Fprint(&b, "\nWarning: the file has no packets.\n")
	} else {
		fmt.Fprintf(&b, "\nPackets: %d, failed: %d, success rate: %s. Times cover successful packets only.\n",
			s.TotalPackets, s.FailedPackets, percent(s.SuccessRate))
		r.groups(&b, "Devices", r.Devices)
		r.groups(&b, "Operations by time", r.Operations)
		r.groups(&b, "Workers by time", r.Workers)
		r.groups(&b, "Layers", r.Layers)
		r.rows(&b, "Slowest packets", r.Slowest)
		failures := "Failed packets"
		if int64(len(r.Failures)) < s.FailedPackets {
			failures = "First failed packets"
		}
		r.rows(&b, failures, r.Failures)
	}
	r.written(&b)
	return b.String()
}

// groups prints a table of groups.
func (r *Report) groups(b *bytes.Buffer, heading string, all []Group) {
	var total float64 // of all devices, so of all packets
	for _, d := range r.Devices {
		total += d.TotalTimeMS
	}
	table(b, heading+"\tpackets\tfailed\ttime ms\tof time\tavg ms\tmin ms\tmax ms", len(all), func(i int) string {
		g, shortest := all[i], 0.0
		if g.MinTimeMS != nil {
			shortest = *g.MinTimeMS
		}
		return fmt.Sprintf("%s\t%d\t%d\t%.3f\t%s\t%.3f\t%.3f\t%.3f", units.Printable(g.Name), g.Count-g.FailedCount, g.FailedCount,
			g.TotalTimeMS, percent(ratio(g.TotalTimeMS, total)), g.AvgTimeMS, shortest, g.MaxTimeMS)
	})
}

// rows prints a table of packets.
func (*Report) rows(b *bytes.Buffer, heading string, all []Row) {
	table(b, heading+"\tpacket\tlayer\tdevice\ttime ms\terror", len(all), func(i int) string {
		row := all[i]
		return fmt.Sprintf("%s\t%d\t%d\t%s\t%.3f\t%s", units.Printable(row.Operation), row.PacketID, row.Layer, units.Printable(row.Device),
			milliseconds(row.Duration), cmp.Or(units.Printable(row.Error), "-"))
	})
}

// table prints n lines of cells that are separated by tabs.
func table(b *bytes.Buffer, heading string, n int, line func(int) string) {
	if n == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\n", heading)
	for i := range n {
		fmt.Fprintf(w, "  %s\n", line(i))
	}
	_ = w.Flush() // to a bytes.Buffer
}

// written prints the summary that the session wrote itself.
func (r *Report) written(b *bytes.Buffer) {
	if r.Problem != "" {
		fmt.Fprintf(b, "\nWarning: the summary can't be read: %s\n", units.Printable(r.Problem))
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
`, units.Printable(s.SessionName), s.TotalTimeS, s.TokensGenerated, s.PromptTokens, s.TokensPerSecond,
		percent(s.SuccessRate), units.Printable(s.CSVLog), units.Printable(s.JSONSummary))
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
