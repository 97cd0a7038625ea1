package session

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// WriteTo prints the report as text: the session overall, its time per worker
// and per layer, the slowest packets, the failures, and the summary that the
// session wrote. Of the workers those are listed that took the most time,
// unless [Report.AllWorkers] is set. It implements [io.WriterTo].
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Session %s\n", printable(r.Path))
	if r.CutLine > 0 {
		fmt.Fprintf(&b, "\nNote: line %d is only a part of a row and was left out, with all after it.\n", r.CutLine)
	}
	if r.Empty() {
		fmt.Fprintf(&b, "\nWarning: there are no packets in the file.\n")
	} else {
		r.overall(&b)
		r.workers(&b)
		r.layers(&b)
		r.slowest(&b)
		r.failures(&b)
	}
	r.written(&b)
	return b.WriteTo(w)
}

func (r *Report) overall(b *bytes.Buffer) {
	s := &r.Summary
	section(b, "Overall", func(t io.Writer) {
		succeeded := s.TotalPackets - s.FailedPackets
		fmt.Fprintf(t, "  packets\t%d\n", s.TotalPackets)
		fmt.Fprintf(t, "  succeeded\t%d\t(%.1f %%)\n", succeeded, 100*s.SuccessRate)
		fmt.Fprintf(t, "  failed\t%d\n", s.FailedPackets)
		fmt.Fprintf(t, "  on cpu\t%d\t(%.3f ms)\n", s.CPUPackets, s.TotalCPUTimeMS)
		fmt.Fprintf(t, "  on igpu\t%d\t(%.3f ms)\n", s.IGPUPackets, s.TotalIGPUTimeMS)
		if others := succeeded - s.CPUPackets - s.IGPUPackets; others > 0 {
			fmt.Fprintf(t, "  on others\t%d\n", others)
		}
	})
}

// workersListed is how many workers are listed if not all are to be. A session
// may have several for each layer of its model.
const workersListed = 20

func (r *Report) workers(b *bytes.Buffer) {
	if len(r.Workers) == 0 { // nothing succeeded
		return
	}
	listed := len(r.Workers)
	if !r.AllWorkers {
		listed = min(listed, workersListed)
	}
	section(b, "Workers by time", func(t io.Writer) {
		for _, w := range r.Workers[:listed] {
			fmt.Fprintf(t, "  %s\t%s\n", printable(w.Worker), times(w.Packets, w.Time))
		}
		var rest WorkerTime
		for _, w := range r.Workers[listed:] {
			rest.Packets += w.Packets
			rest.Time += w.Time
		}
		if more := len(r.Workers) - listed; more > 0 {
			fmt.Fprintf(t, "  and %d more\t%s\n", more, times(rest.Packets, rest.Time))
		}
	})
}

func (r *Report) layers(b *bytes.Buffer) {
	if len(r.Layers) == 0 {
		return
	}
	section(b, "Layers", func(t io.Writer) {
		for _, l := range r.Layers {
			fmt.Fprintf(t, "  layer %d\t%s\n", l.Layer, times(l.Packets, l.Time))
		}
	})
}

func (r *Report) slowest(b *bytes.Buffer) {
	if len(r.Slowest) == 0 {
		return
	}
	section(b, "Slowest packets", func(t io.Writer) {
		for i, row := range r.Slowest {
			fmt.Fprintf(t, "  %d. %s\tlayer %d\t%s\t%.3f ms\tpacket %d\n", i+1,
				printable(row.Operation), row.Layer, printable(row.Device), milliseconds(row.Duration), row.PacketID)
		}
	})
}

func (r *Report) failures(b *bytes.Buffer) {
	if len(r.Failures) == 0 {
		return
	}
	section(b, "Failed packets", func(t io.Writer) {
		for _, row := range r.Failures {
			fmt.Fprintf(t, "  packet %d\t%s\tlayer %d\t%s\t%s\n", row.PacketID,
				printable(row.Operation), row.Layer, printable(row.Device), printable(row.Error))
		}
		if more := r.Summary.FailedPackets - int64(len(r.Failures)); more > 0 {
			fmt.Fprintf(t, "  and %d more\n", more)
		}
	})
}

func (r *Report) written(b *bytes.Buffer) {
	if r.WrittenErr != nil {
		fmt.Fprintf(b, "\nWarning: the summary can't be read: %s\n", printable(r.WrittenErr.Error()))
	}
	s := r.Written
	if s == nil {
		return
	}
	section(b, "Summary of the session", func(t io.Writer) {
		fmt.Fprintf(t, "  session\t%s\n", printable(s.SessionName))
		fmt.Fprintf(t, "  duration\t%s\n", lasted(s.TotalTimeS))
		fmt.Fprintf(t, "  tokens\t%d generated, %d prompt\n", s.TokensGenerated, s.PromptTokens)
		fmt.Fprintf(t, "  throughput\t%.2f tokens/s\n", s.TokensPerSecond)
		fmt.Fprintf(t, "  success rate\t%.1f %%\n", 100*s.SuccessRate)
		fmt.Fprintf(t, "  csv\t%s\n", printable(s.CSVLog))
		fmt.Fprintf(t, "  json\t%s\n", printable(s.JSONSummary))
	})
}

// section prints a heading and lines of cells, aligned.
func section(b *bytes.Buffer, heading string, lines func(io.Writer)) {
	fmt.Fprintf(b, "\n%s\n", heading)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	lines(t)
	_ = t.Flush() // a buffer takes everything
}

// lasted is a time in seconds, to at least a microsecond.
func lasted(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3f ms", 1000*seconds)
	}
	return fmt.Sprintf("%.3f s", seconds)
}

// times are the cells of a number of packets and the time they took.
func times(packets int64, took time.Duration) string {
	total := milliseconds(took)
	return fmt.Sprintf("%6d packets\t%9.3f ms\t(avg %.3f ms)", packets, total, ratio(total, float64(packets)))
}

// printable is text of a file as it may go to a terminal: in quotes, with
// escapes, where it has characters that would do something there.
func printable(s string) string {
	notPrint := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, notPrint) < 0 {
		return s
	}
	return strconv.Quote(s)
}
