// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// overview returns the dashboard with rate, errors and duration, and the agents that stand out.
func overview() Dashboard {
	return Dashboard{
		UID: "nixl-overview", Title: "NIXL / Overview",
		Description: "Throughput, errors and transfer times of all NIXL agents, and the agents that stand out.",
		Variables:   append(agentVariables(), shown("Agents")),
		Rows: append([]Row{
			wrong(),
			{Title: "Now", Panels: []Panel{
				agentsNow,
				number("Throughput", "Bytes of completed transfers.", BytesPerSecond, `sum(rate(nixl_transfer_io_bytes_total{@}[@]))`),
				number("Errors", "Failed operations as a share of all operations.", Share, errorRatio("")).bad(0.01),
				number("Transfer time, p99", "99th percentile.", Seconds, transferTime.quantile("0.99", "")),
				lossNow.wide(8),
			}},
			{Title: "Rate, errors, duration", Panels: []Panel{requests, throughput, times, errorTypes, speeds}},
			{Title: "Agents compared", Panels: []Panel{stragglers, errorRatios}},
			{Title: "Busiest agents", Panels: []Panel{agentTable()}},
		}, neighborhood()...),
	}
}

// agentTable returns a table of the agents with the highest throughput.
func agentTable() Panel {
	const busiest = `now(` + agentBytes + `{@}) or 0 * ` + everyAgent
	return busy("Busiest agents", "The agents with the highest throughput. An agent's name links to its dashboard.", busiest,
		column("Throughput", BytesPerSecond, `(`+busiest+`)`),
		column("Sent", BytesPerSecond, sent.Queries[0].Expr),
		column("Received", BytesPerSecond, received.Queries[0].Expr),
		column("Transfers", Requests, agentRequests+`{@}`),
		column("Speed", BytesPerSecond, agentSpeed+`{@}`),
		column("p50", Seconds, transferTime.quantile("0.5", agentLabels)),
		column("p99", Seconds, transferTime.quantile("0.99", agentLabels)),
		column("Errors", Share, agentErrors+`{@}`),
		column("Memory", Memory, memory.Queries[0].Expr),
		column("Ring fill", Share, fill.Queries[0].Expr),
	)
}

// wrong returns the row that says which agents are wrong, how, and since when.
func wrong() Row {
	// The rules are evaluated once a minute.
	const finding = `(` + agentFinding + `{@} or ` + hostFinding + `{@})`
	const since = `1000 * (time() - 60 * count_over_time(` + finding + `[3h:1m]))`
	return Row{Title: "What is wrong", Panels: []Panel{{
		Title: "Agents and hosts that are wrong", Kind: Table, Width: 24, NoData: "Nothing was found about these agents and hosts",
		Description: "Every agent with a problem, and every host whose metrics no longer arrive or have gaps. The value is how fast it is compared with its peers or its past, or the share of failed operations or of post time. Needs rules.yaml.",
		Queries: []Query{
			{Expr: finding, Legend: "Value", Unit: Share},
			{Expr: since, Legend: "Since (at most 3 h ago)", Unit: Time},
		},
	}}}
}
