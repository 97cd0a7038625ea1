// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Process is a process that uses NIXL.
type Process struct {
	PID       int    `json:"pid"`
	Command   string `json:"command"`
	Telemetry bool   `json:"telemetry"`          // it has a ring or a store, or is about to create one
	Disabled  string `json:"disabled,omitempty"` // the value of NIXL_TELEMETRY_ENABLE if it disables telemetry; else empty
	Exporter  string `json:"exporter,omitempty"` // the value of NIXL_TELEMETRY_EXPORTER; empty if it isn't set
}

// Misspelled says what is wrong with a value of NIXL_TELEMETRY_EXPORTER that is the name of NIXL's exporter of rings except
// for its case, or returns "". The exporters are plug-ins, which NIXL finds by their exact name.
func Misspelled(exporter string) string {
	const name = "BUFFER"
	if exporter == name || !strings.EqualFold(exporter, name) {
		return ""
	}
	return fmt.Sprintf("NIXL has no exporter %q; set NIXL_TELEMETRY_EXPORTER=%s", exporter, name)
}

// Processes returns the findings about processes that use NIXL without telemetry. Processes of the same
// program are one finding.
func Processes(list []Process) (found []Finding) {
	type cause struct {
		command             string
		disabled, telemetry bool
		exporter            string
	}
	for _, group := range grouped(list, func(p Process) cause { return cause{p.Command, p.Disabled != "", p.Telemetry, p.Exporter} }) {
		p := group[0]
		who := fmt.Sprintf("%s (process %d)", p.Command, p.PID)
		if len(group) > 1 {
			who = fmt.Sprintf("%s (%d processes, such as %d)", p.Command, len(group), p.PID)
		}
		value := group[len(group)-1].Disabled
		switch {
		case p.Telemetry:
		case value != "":
			found = append(found, newFinding(TelemetryDisabled, []Identity{}, "NIXL_TELEMETRY_ENABLE="+value,
				fmt.Sprintf("%s uses NIXL with NIXL_TELEMETRY_ENABLE=%s, which breaks vLLM.", who, value),
				"vLLM asks its agents for telemetry. NIXL 1.3.1 and later let the variable override that, and vLLM then discards finished transfers"))
		default:
			f := newFinding(NoTelemetry, []Identity{}, "no telemetry", fmt.Sprintf("%s uses NIXL without telemetry.", who),
				"it has libnixl mapped, but no ring and no store")
			if p.Exporter != "" {
				f.Evidence = append(f.Evidence, cmp.Or(Misspelled(p.Exporter), "its NIXL_TELEMETRY_EXPORTER is "+units.Printable(p.Exporter)))
			}
			found = append(found, f)
		}
	}
	return found
}

// ProcessCheck says which processes were examined.
func ProcessCheck(list []Process) Check {
	reporting := 0
	for _, p := range list {
		reporting += boolean(p.Telemetry)
	}
	c := Check{"processes", []Kind{NoTelemetry, TelemetryDisabled}, len(list) > 0 && reporting == len(list), "no process that uses NIXL was found"}
	if len(list) > 0 {
		c.What = fmt.Sprintf("%s NIXL, %d with a ring or a store", counted(len(list), "1 process uses", "%d processes use"), reporting)
	}
	return c
}
