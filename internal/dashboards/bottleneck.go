// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// bottleneck returns the dashboard that shows why transfers are slow.
func bottleneck() Dashboard {
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
			{Title: "Distribution", Panels: []Panel{
				timeMap,
				distribution("Throughput of single transfers, distribution", "Transfers per second, by throughput.", BytesPerSecond, transferSpeed),
			}},
		}, neighborhood()...),
	}
}
