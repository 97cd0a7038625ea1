// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// The last bit of a floating-point sum depends on the order of the values.
var nearly = cmpopts.EquateApprox(1e-15, 0)

// copyRings copies all rings of testdata/rings to a telemetry directory, in subdirectories.
func copyRings(tb testing.TB) (dir string, cases []ringtest.Case) {
	tb.Helper()
	dir, cases = tb.TempDir(), ringtest.Cases(tb)
	for _, c := range cases {
		path := filepath.Join(dir, c.Name)
		must.OK(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		ringtest.CopyTo(tb, c, path)
	}
	return dir, cases
}

// NIXL's own code wrote the rings.
func TestEveryRingIsReportedAsItsJSONStates(t *testing.T) {
	dir, cases := copyRings(t)
	h := newHarness(t, dir, func(c *Config) { c.Include = []string{"**"} })
	h.startWith(reportable(cases))
	first := read(t, h.next())
	h.until(func(now agents) bool { // a ring that has wrapped is read after a second
		read := true
		for _, c := range cases {
			if c.Reported() && c.WritePos == 0 && c.ReadPos != 0 && len(first[c.Name].points) < len(expect(&c)) {
				first[c.Name] = now[c.Name]
				read = read && len(now[c.Name].points) == len(expect(&c))
			}
		}
		return read
	})
	last := read(t, h.shutdown())

	for _, c := range cases {
		if !c.Reported() {
			if first[c.Name] != nil {
				t.Errorf("%s: an invalid or empty ring is reported", c.Name)
			}
			continue
		}
		if first[c.Name] == nil || last[c.Name] == nil {
			t.Errorf("%s: not reported", c.Name)
			continue
		}
		want := expect(&c)
		if d := cmp.Diff(want, first[c.Name].points, nearly); d != "" {
			t.Errorf("%s (-its JSON +reported):\n%s", c.Name, d)
		}
		// There are no new events. Only the fill level is that of another interval.
		want["nixl.telemetry.ring.utilization"] = 0.0
		if d := cmp.Diff(want, last[c.Name].points, nearly); d != "" {
			t.Errorf("%s at shutdown (-its JSON +reported):\n%s", c.Name, d)
		}
		if h := ringtest.ReadHeader(t, filepath.Join(dir, c.Name)); h.ReadPos != c.WritePos {
			t.Errorf("%s: read position is %d, want %d", c.Name, h.ReadPos, c.WritePos)
		}
	}
	if want := reportable(cases); len(first) != want {
		t.Errorf("%d agents reported of %d rings", len(first), want)
	}
}

// reportable returns how many of the rings are reported.
func reportable(cases []ringtest.Case) (n int) {
	for _, c := range cases {
		if c.Reported() {
			n++
		}
	}
	return n
}
