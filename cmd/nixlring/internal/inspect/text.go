// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer, now time.Time) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, units.Printable(fmt.Sprintf(format, args...)))
	}
	kind := "Ring"
	switch {
	case r.named():
		kind = "Store"
	case r.other:
		kind = "File"
	}
	line(kind, "%s", r.Path)
	if r.Error != "" {
		line("Problem", "%s", r.Error)
	}
	if !r.other {
		r.fileText(line, now)
	}
	name := "Advice"
	for _, advice := range r.Advice {
		for _, l := range wrap(advice, adviceWidth) {
			line(name, "%s", l)
			name = ""
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *Report) fileText(line liner, now time.Time) {
	f := &r.File
	line("File", "%d bytes, %s, uid %d, gid %d, inode %d on device %s", f.Size, f.Mode, f.Owner, f.Group, f.Inode, f.Device)
	line("Modified", "%v ago, according to the file system", now.Sub(f.Modified).Round(time.Second))
	if r.Header != nil {
		r.headerText(line)
	}
	if r.Content != nil {
		r.contentText(line)
	}
	if r.Burst != nil {
		r.burstText(line)
	}
	if r.Store != nil {
		r.storeText(line, now)
	}
	if !r.named() {
		r.processText(line)
	}
}

// adviceWidth is the width of advice in a terminal of 80 columns.
const adviceWidth = 68

// wrap splits a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

type liner func(name, format string, args ...any)

func (r *Report) headerText(line liner) {
	h := r.Header
	line("Header", "write_pos %d, read_pos %d, version %d, expected_version %d, capacity %d, mask %#x",
		h.WritePos, h.ReadPos, h.Version, h.ExpectedVersion, h.Capacity, h.Mask)
	wrong := 0
	for _, c := range r.Checks {
		if !c.OK {
			line("Check", "FAILED: %s", c.What)
			wrong++
		}
	}
	if wrong == 0 {
		line("Checks", "all %d passed: version, expected version, capacity, mask, positions, file size", len(r.Checks))
	}
}

func (r *Report) contentText(line liner) {
	c := r.Content
	line("Layout", "%s, %d bytes per event", c.Layout, c.EventSize)
	line("Fill", "%d of %d events (%.0f%%)", c.Pending, c.Capacity-1, 100*c.Fill)
	if c.Oldest != nil {
		const form = "2006-01-02 15:04:05.000000"
		line("Events", "from %s to %s", c.Oldest.Format(form), c.Newest.Format(form))
	}
}

func (r *Report) burstText(line liner) {
	b := r.Burst
	line("Watched", "%.1f s: %d events, at most %d within a run interval; at most %d in the ring at once",
		b.Seconds, b.Events, b.Most, b.PeakFill)
	if b.Missed {
		line("", "some events were missed: they were consumed and overwritten between two polls")
	}
	if b.Restarts > 0 {
		line("", "restarts of the agent: %d", b.Restarts)
	}
}

func (r *Report) processText(line liner) {
	name := "Mapped by"
	for _, p := range r.Mapped {
		how := "reads"
		if p.Writable {
			how = "reads and writes"
		}
		if r.Consumer != nil && r.Consumer.PID == p.PID {
			how += ", consumes"
		}
		line(name, "process %d (%s), %s", p.PID, p.Command, how)
		name = ""
	}
	switch {
	case r.Hidden > 0:
		line(name, "possibly others: %s", r.unseen)
	case len(r.Mapped) == 0:
		line(name, "no visible process")
	}
	switch {
	case r.Consumer != nil:
		line("Consumer", "process %d (%s) holds the consumer lock", r.Consumer.PID, r.Consumer.Command)
	case r.hidden:
		line("Consumer", "unknown: %s", procs.ManyLocks)
	}
	switch {
	case r.Unattended == nil:
		line("In use", "unknown: requires the file's owner or root, and a file system with leases, unlike overlayfs")
	case *r.Unattended:
		line("In use", "no: no process has it open for writing")
	default:
		line("In use", "yes: an agent or a consumer has it open for writing")
	}
	if r.Ring {
		line("Agent", "%s", map[procs.Alive]string{
			procs.Yes:     "running",
			procs.No:      "exited",
			procs.Unknown: "unknown: " + cmp.Or(r.unseen, "a process that isn't visible may have it open"),
		}[r.alive])
	}
}
