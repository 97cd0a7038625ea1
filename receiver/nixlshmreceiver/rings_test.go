// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle/ringoracle"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// NIXL's own code wrote the rings. Their points have the attributes of the catalog.
func TestEveryRingIsReportedAsItsJSONStates(t *testing.T) {
	dir, want := t.TempDir(), make(map[string]oracle.Points)
	for _, c := range ringtest.Cases(t) {
		path := filepath.Join(dir, c.Name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ringtest.CopyTo(t, c, path)
		if c.Reported() {
			_, want[c.Name] = ringoracle.Of(&c)
		}
	}
	h := newHarness(t, dir, func(c *Config) { c.Include = []string{"**"} }).startWith(len(want))
	got := make(map[string]oracle.Points)
	must.Eventually(t, func() string { // a ring that has wrapped is read after a second
		for name, a := range read(t, h.next()) {
			got[name] = a.points
		}
		return cmp.Diff(want, got, cmpopts.EquateApprox(1e-15, 0), // the last bit of a sum depends on the order of the values
			cmpopts.IgnoreMapEntries(func(point string, _ any) bool { return point == "nixl.telemetry.ring.utilization" })) // of the interval
	})
	must.OK(t, h.stop())
	for _, c := range ringtest.Cases(t) {
		if h := ringtest.ReadHeader(t, filepath.Join(dir, c.Name)); c.Reported() && h.ReadPos != c.WritePos {
			t.Errorf("%s: read position is %d, want %d", c.Name, h.ReadPos, c.WritePos)
		}
	}

	catalog, attributes := make(map[string][]string), make(map[string][]string)
	for _, points := range got {
		for point := range points {
			metric, list, _ := strings.Cut(point, "{")
			attributes[metric] = nil
			for pair := range strings.SplitSeq(strings.TrimSuffix(list, "}"), ",") {
				if key, _, ok := strings.Cut(pair, "="); ok {
					attributes[metric] = append(attributes[metric], key)
				}
			}
		}
	}
	for _, m := range semconv.NIXL() {
		if m.Name != semconv.AgentUp.Name { // depends on the time
			catalog[m.Name] = slices.Sorted(slices.Values(m.Attributes))
		}
	}
	if d := cmp.Diff(catalog, attributes); d != "" {
		t.Errorf("attributes (-semconv +reported):\n%s", d)
	}
}
