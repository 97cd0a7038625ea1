// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// oneAgent returns the dashboard of one agent.
func oneAgent() Dashboard {
	return Dashboard{
		UID: "nixl-agent", Title: "NIXL / Agent",
		Description: "All metrics of one NIXL agent.",
		Variables:   oneAgentVariables(),
		Rows: append([]Row{
			{Title: "Transfers", Panels: []Panel{
				throughput.described("Bytes of completed transfers that the agent initiated."),
				requests.described("Completed transfers that the agent initiated."),
				errorTypes,
				times, postTimes, postShare,
				speeds.wide(12),
				quantiles("Transfer size", "Both directions.", Bytes, transferSize.quantile).wide(12),
				timeMap,
				distribution("Transfer size, distribution", "Transfers per second, by size.", Bytes, transferSize),
			}},
			{Title: "Memory and telemetry", Panels: []Panel{
				memory.alone("registered").described("Memory registered with the agent."),
				lines("Up", "1 while a process has the agent's ring or store open, 0 once none has. Empty if the kernel can't tell.", Count,
					`max(nixl_agent_up{@})`, "up").upTo(1),
				fill.alone("highest fill"),
				loss.wide(12),
			}},
		}, slowTransfers()...),
	}
}

// alone returns a ranked panel for a dashboard of one agent.
func (p Panel) alone(legend string) Panel {
	p.Queries = []Query{{Expr: p.Queries[0].Expr, Legend: legend}}
	p.Width = 0
	return p
}
