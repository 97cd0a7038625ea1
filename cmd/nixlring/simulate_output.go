// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// describe returns a line that describes the fleet.
func (f *simulateFlags) describe(fleet *simulate.Fleet) string {
	all := fleet.Agents()
	names := filepath.Base(all[0].Path())
	if len(all) > 1 {
		names += " to " + filepath.Base(all[len(all)-1].Path())
	}
	about := fmt.Sprintf("%v transfers/s each", f.fleet.Agent.Rate)
	if f.scenario != "" {
		about = "scenario " + f.scenario
	}
	return fmt.Sprintf("%s, %s, %s, layout %s, seed %d,", plural(len(all), "agent", "agents"), names, about, f.layout, f.fleet.Agent.Seed)
}

// writeReport writes a table of the totals, with a line per agent.
func writeReport(w io.Writer, fleet *simulate.Fleet, r simulate.Report, elapsed time.Duration) error {
	t := newTable("RING", "LAYOUT", ">STARTS", ">TRANSFERS", ">FAILED", ">EVENTS WRITTEN", ">DROPPED (STAGING)", ">DROPPED (RING FULL)", ">UNREAD")
	row := func(name string, a simulate.Totals) {
		t.add(name, a.Layout, units.Count(uint64(a.Starts)), units.Count(a.Operations), units.Count(a.Failed),
			units.Count(a.Written), units.Count(a.DroppedStaging), units.Count(a.DroppedRing), units.Count(uint64(a.Pending)))
	}
	for _, a := range fleet.Agents() {
		row(a.Path(), r.Agents[a.Path()])
	}
	if len(r.Agents) > 1 {
		row("all", r.Sum)
	}
	if err := t.write(w); err != nil {
		return err
	}
	rate := float64(r.Sum.Operations) / elapsed.Seconds() / float64(len(r.Agents))
	_, err := fmt.Fprintf(w, "\n%s transfers/s of each agent over %v, seed %d\n", units.Count(uint64(rate)), elapsed.Round(100*time.Millisecond), r.Seed)
	return err
}
