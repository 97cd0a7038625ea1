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
		Rows: []Row{
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
			{Title: "GPU and serving (needs the DCGM exporter and Dynamo)", Panels: serving(), Optional: true},
		},
	}
}

// serving returns panels with metrics of the DCGM exporter and of Dynamo, which don't have
// the labels of agents.
func serving() []Panel {
	return []Panel{
		lines("NVLink, sent", "Bytes that each GPU sends over NVLink (DCGM).", BytesPerSecond,
			`sum by (Hostname, gpu) (DCGM_FI_PROF_NVLINK_TX_BYTES)`, "{{Hostname}} GPU {{gpu}}"),
		lines("NVLink, received", "Bytes that each GPU receives over NVLink (DCGM).", BytesPerSecond,
			`sum by (Hostname, gpu) (DCGM_FI_PROF_NVLINK_RX_BYTES)`, "{{Hostname}} GPU {{gpu}}"),
		lines("Copy utilization", "Share of the time in which each GPU's memory was read or written (DCGM).", Percent,
			`max by (Hostname, gpu) (DCGM_FI_DEV_MEM_COPY_UTIL)`, "{{Hostname}} GPU {{gpu}}").upTo(100),
		lines("Time to first token, 99th percentile", "By model (Dynamo).", Seconds,
			ofModel("dynamo_frontend_time_to_first_token_seconds").quantile("0.99", "model"), "{{model}}").wide(12),
		lines("Time between tokens, 99th percentile", "By model (Dynamo).", Milliseconds,
			ofModel("dynamo_frontend_inter_token_latency_seconds").quantile("0.99", "model"), "{{model}}").wide(12),
	}
}

// ofModel returns a histogram of another program, with the model's name as a label.
func ofModel(name string) histogram {
	return histogram{name: name, matchers: `model=~"$model"`, foreign: true}
}
