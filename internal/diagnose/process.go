// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "fmt"

// Process is a process that uses NIXL.
type Process struct {
	PID       int
	Command   string
	Telemetry bool   // it has a ring or a store, or is about to create one
	Enable    string // the value of NIXL_TELEMETRY_ENABLE; empty if it isn't set
}

// Processes returns the findings about processes that use NIXL without telemetry. Processes of the same
// program are one finding.
func Processes(list []Process) (found []Finding) {
	type group struct {
		command  string
		disabled bool
	}
	pids := make(map[group][]int)
	var order []group
	values := make(map[group]string)
	for _, p := range list {
		if p.Telemetry {
			continue
		}
		g := group{p.Command, p.Enable != ""}
		if pids[g] == nil {
			order = append(order, g)
		}
		pids[g], values[g] = append(pids[g], p.PID), p.Enable
	}
	for _, g := range order {
		if g.disabled {
			found = append(found, disabled(g.command, values[g], pids[g]))
		} else {
			found = append(found, silent(g.command, pids[g]))
		}
	}
	return found
}

func disabled(command, value string, pids []int) Finding {
	return Finding{
		Kind: TelemetryDisabled, Severity: Warning, Agents: []Identity{},
		Short:    "NIXL_TELEMETRY_ENABLE=" + value,
		What:     fmt.Sprintf("%s uses NIXL with NIXL_TELEMETRY_ENABLE=%s, which breaks vLLM.", processes(command, pids), value),
		Evidence: []string{"vLLM asks its agents for telemetry. NIXL 1.3.1 and later let the variable override that, and vLLM then discards finished transfers"},
		Not:      "It isn't the same as leaving the variable unset: then vLLM works, without telemetry.",
		Next:     "Unset NIXL_TELEMETRY_ENABLE, or set it to y. Never set it to n. Dynamo's operator sets it by default: override it in the pod's environment.",
	}
}

func silent(command string, pids []int) Finding {
	return Finding{
		Kind: NoTelemetry, Severity: Info, Agents: []Identity{},
		Short:    "no telemetry",
		What:     fmt.Sprintf("%s uses NIXL without telemetry.", processes(command, pids)),
		Evidence: []string{"it has libnixl mapped, but no ring and no store"},
		Not:      "It needn't be a problem: the process may load NIXL without creating an agent.",
		Next:     "To see its transfers, start it with NIXL_TELEMETRY_ENABLE=y, NIXL_TELEMETRY_EXPORTER=BUFFER and NIXL_TELEMETRY_DIR.",
	}
}

// processes names a process, or several of one program.
func processes(command string, pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("%s (process %d)", command, pids[0])
	}
	return fmt.Sprintf("%s (%d processes, such as %d)", command, len(pids), pids[0])
}
