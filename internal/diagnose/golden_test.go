// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"cmp"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
)

var update = flag.Bool("update", false, "update the golden files")

// textOf returns what an operator reads: findings, and what was compared.
func textOf(name string, r *diagnose.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", name)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s (%s)\n", f.Severity, f.What, f.Short)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "  - %s\n", e)
		}
		if f.Not != "" {
			fmt.Fprintf(&b, "  %s\n", f.Not)
		}
		for _, c := range f.Commands {
			fmt.Fprintf(&b, "  $ %s\n", c)
		}
		fmt.Fprintf(&b, "  %s, %s, since %s, %.3f\n", f.Kind, map[bool]string{true: "job", false: "agent"}[f.OfJob()], cmp.Or(strings.TrimPrefix(f.Since.UTC().Format(time.TimeOnly), "00:00:00"), "?"), f.Ratio)
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s %s: %s\n", map[bool]string{true: "✓", false: "-"}[c.Well], c.Name, c.What)
	}
	drained := make(map[diagnose.Draining]int)
	for _, d := range r.Draining {
		drained[d]++
	}
	fmt.Fprintf(&b, "%s. rings by who drains them: %v\n", diagnose.Headline(r.Findings, r.Checks, r.Still), drained)
	return b.String()
}

func TestTextsOfIncidents(t *testing.T) {
	var b strings.Builder
	for _, f := range fleets.Incidents() {
		r := diagnose.Now(f.Frames(), diagnose.Rules())
		b.WriteString(textOf(f.Name, &r))
	}
	golden.Compare(t, *update, "incidents.txt", b.String())
}

func TestTextsOfShortWatches(t *testing.T) {
	var b strings.Builder
	for _, s := range short() {
		r := s.watch()
		b.WriteString(textOf(s.name, &r))
	}
	golden.Compare(t, *update, "short.txt", b.String())
}
