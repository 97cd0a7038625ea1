// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"fmt"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Misjudged says what is wrong with the findings that the metrics of a fleet gave. They must be those that the rules have, and nothing
// else may be a problem.
func (f *Fleet) Misjudged(found []diagnose.Finding) (wrong []string) {
	ofJob := []diagnose.Kind{diagnose.JobStalled, diagnose.JobSlower, diagnose.Failing, diagnose.Gone}
	var all []Want
	for i := range found {
		w := Want{Kind: found[i].Kind}
		if len(found[i].Agents) == 1 && !slices.Contains(ofJob, w.Kind) {
			w.Agent = found[i].Agents[0].Name
		}
		all = append(all, w)
		alerted := slices.ContainsFunc(f.Alerts, func(a Alert) bool { return a.Value == w.Agent || a.Name == string(w.Kind) })
		switch severity := found[i].Severity; {
		case severity == diagnose.Info, f.Warns && severity == diagnose.Warning, slices.Contains(f.Want, w), len(f.Want) == 0 && alerted:
		case w == Want{Kind: diagnose.JobStalled} && len(f.Alerts) > 0: // a direction, of a job that the alerts name
		default:
			wrong = append(wrong, fmt.Sprintf("found %v: %s", w, found[i].What))
		}
	}
	for _, w := range f.Want {
		if !slices.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("found %v, want %v", all, w))
		}
	}
	return wrong
}
