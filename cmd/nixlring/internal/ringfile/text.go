// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// adviceWidth is the width of advice in a terminal of 80 columns.
const adviceWidth = 68

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer, now time.Time) error {
	t := &text{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	switch {
	case r.named():
		t.line("Store", "%s", r.Path)
	case r.notRing():
		t.line("File", "%s", r.Path)
	default:
		t.line("Ring", "%s", r.Path)
	}
	if r.Problem != "" {
		t.line("Problem", "%s", r.Problem)
	}
	if !r.notRing() {
		f := &r.File
		t.line("File", "%d bytes, %s, uid %d, gid %d, inode %d on device %s", f.Size, f.Mode, r.Owner, f.Group, f.Inode, f.Device)
		t.line("Modified", "%v ago, according to the file system", max(0, now.Sub(r.Modified)).Round(time.Second))
	}
	t.header(r)
	if r.Ring {
		t.ring(r)
	}
	if r.Store != nil {
		t.store(r, now)
	}
	if r.Users != nil {
		t.users(r)
	}
	name := "Advice"
	for _, advice := range r.Advice {
		for _, line := range units.Wrap(advice, adviceWidth) {
			t.line(name, "%s", line)
			name = ""
		}
	}
	return t.out.Flush()
}

// text writes lines with a name.
type text struct{ out *tabwriter.Writer }

func (t *text) line(name, format string, args ...any) {
	fmt.Fprintf(t.out, "%s\t%s\n", name, units.Printable(fmt.Sprintf(format, args...)))
}

func (t *text) header(r *Report) {
	h := r.Header
	if h == nil {
		return
	}
	t.line("Header", "write_pos %d, read_pos %d, version %d, expected_version %d, capacity %d, mask %#x",
		h.WritePos, h.ReadPos, h.Version, h.ExpectedVersion, h.Capacity, h.Mask)
}

func (t *text) ring(r *Report) {
	t.line("Layout", "%s, %d bytes per event", r.Layout, r.File.EventSize)
	t.line("Fill", "%d of %d events (%s)", *r.Pending, r.Capacity-1, r.Percent())
}

func (t *text) store(r *Report, now time.Time) {
	s := r.Store
	t.line("Layout", "%s, a store of NIXL's prometheus_mp exporter", r.Layout)
	t.line("Agent", "%s", s.Agent)
	t.line("Process", "%d (in its own PID namespace), instance %d, on host %s", s.PID, s.Instance, s.Host)
	if s.LocalRank != "" {
		t.line("Local rank", "%s", s.LocalRank)
	}
	t.line("Started", "%s, %s ago", s.Start.Format(time.DateTime), units.Age(now.Sub(s.Start)))
	t.line("State", "%s", [...]string{
		diagnose.Unknown: "unknown: the file system doesn't report who holds the lock on the store",
		diagnose.No:      "exited: no process holds the lock on the store",
		diagnose.Yes:     "running: a process holds the lock on the store",
	}[r.InUse])
}

func (t *text) users(r *Report) {
	name := "Mapped by"
	for _, p := range r.Users.Mapped {
		how := "reads"
		if p.Writes > 0 {
			how = "reads and writes"
		}
		t.line(name, "%v, %s", p, how)
		name = ""
	}
	switch {
	case r.Users.Unseen != "":
		t.line(name, "possibly others: %s", r.Users.Unseen)
	case len(r.Users.Mapped) == 0:
		t.line(name, "no process")
	}
	if r.Users.Consumer != nil {
		t.line("Consumer", "%v holds the consumer lock", r.Users.Consumer)
	}
	if r.Ring {
		t.line("In use", "%s", [...]string{
			diagnose.Unknown: "unknown: requires the file's owner or root, and a file system with leases, unlike overlayfs",
			diagnose.No:      "no: no process has it open for writing",
			diagnose.Yes:     "yes: an agent or a consumer has it open for writing",
		}[r.InUse])
		t.line("Agent", "%s", [...]string{
			diagnose.Unknown: "unknown: a process that can't be inspected may have the ring open",
			diagnose.No:      "exited",
			diagnose.Yes:     "running",
		}[r.Users.Running])
	}
}
