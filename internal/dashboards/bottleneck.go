// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// bottleneck returns the dashboard that shows why transfers are slow.
func bottleneck() Dashboard {
	const bySize = "nixl_transfer_size_class"
	classed := transferTime.where(bySize + `!=""`)
	return Dashboard{
		UID: "nixl-bottleneck", Title: "NIXL / Bottleneck",
		Description: "Possible causes of slow transfers: one agent, posting, the size of transfers, or the link.",
		Variables:   append(agentVariables(), shown("Agents")),
		Rows: append([]Row{
			{Title: "Which agent", Panels: []Panel{
				stragglers,
				lowest("Lowest throughput", "Bytes of an agent's transfers divided by the sum of their times.", BytesPerSecond,
					`now(`+agentSpeed+`{@})`, byAgent),
				slowest, postShares,
			}},
			{Title: "Posting or moving", Panels: []Panel{postShare, times, postTimes}},
			{Title: "Size", Panels: []Panel{
				speeds,
				quantiles("Transfer size", "Both directions.", Bytes, transferSize),
				lines("Throughput of single transfers, by direction", "Median.", BytesPerSecond,
					transferSpeed.quantile("0.5", "nixl_transfer_direction"), byDirection),
			}},
			{Title: "Size classes", Panels: []Panel{
				lines("Transfer time by size class, median", "Needs size_class, which is off by default.", Milliseconds,
					classed.quantile("0.5", bySize), "{{"+bySize+"}}").wide(12),
				lines("Transfer time by size class, 99th percentile",
					"Small transfers that take as long as large ones probably wait behind them. Needs size_class, which is off by default.", Milliseconds,
					classed.quantile("0.99", bySize), "{{"+bySize+"}}").wide(12),
			}, Optional: true},
			{Title: "Distribution", Panels: []Panel{
				timeMap,
				distribution("Throughput of single transfers, distribution", "Transfers per second, by throughput.", BytesPerSecond, transferSpeed),
			}},
		}, neighborhood()...),
	}
}
