package dashboards

// agentLabels tell agents apart: two hosts may have agents of one name.
const agentLabels = "host_name, nixl_agent_name"

// What agents do, side by side.
var (
	sent = lines("Sent", "Bytes of completed writes. The agent that starts a transfer counts it.", BytesPerSecond,
		`sum by (`+agentLabels+`) (rate(nixl_transfer_io_bytes_total{@,network_io_direction="transmit"}[@]))`, byAgent)
	received = lines("Received", "Bytes of completed reads. The agent that starts a transfer counts it.", BytesPerSecond,
		`sum by (`+agentLabels+`) (rate(nixl_transfer_io_bytes_total{@,network_io_direction="receive"}[@]))`, byAgent)
	transfers = lines("Transfers", "Completed transfers, in both directions.", PerSecond,
		`sum by (`+agentLabels+`) (rate(nixl_transfer_requests_total{@}[@]))`, byAgent)
	slowest = lines("Transfer time, 99th percentile",
		"From the start of a transfer until the application saw it complete, by agent.", Milliseconds,
		`histogram_quantile(0.99, sum by (le, `+agentLabels+`) (rate(nixl_transfer_duration_seconds_bucket{@}[@])))`, byAgent)
	slowestPost = lines("Post time, 99th percentile",
		"From the start of a transfer until it was posted to the backend, by agent.", Microseconds,
		`histogram_quantile(0.99, sum by (le, `+agentLabels+`) (rate(nixl_transfer_post_duration_seconds_bucket{@}[@])))`, byAgent)
	times = quantiles("Transfer time, all agents",
		"From the start of a transfer until the application saw it complete.", Milliseconds, "nixl_transfer_duration_seconds")
	postTimes = quantiles("Post time, all agents",
		"From the start of a transfer until it was posted to the backend.", Microseconds, "nixl_transfer_post_duration_seconds")
	sizes = lines("Transfer size, median", "Of all agents, by direction.", Bytes,
		`histogram_quantile(0.5, sum by (le, network_io_direction) (rate(nixl_transfer_size_bytes_bucket{@}[@])))`, byDirection)
	errors = lines("Errors", "Operations that failed, by agent.", PerSecond,
		`sum by (`+agentLabels+`) (rate(nixl_errors_total{@}[@]))`, byAgent)
	errorTypes = lines("Errors by type", "Operations of all agents that failed, by NIXL's status.", PerSecond,
		`sum by (error_type) (rate(nixl_errors_total{@}[@])) > 0`, byError)
	memory = lines("Registered memory", "Memory registered with each agent at present.", Memory,
		`sum by (`+agentLabels+`) (nixl_memory_usage_bytes{@})`, byAgent)
)

var hosts = Variable{Name: "host", Label: "Host", Key: "host_name", Metric: "nixl_telemetry_ring_capacity"}

func agents(single bool) Variable {
	return Variable{
		Name: "agent", Label: "Agent", Key: "nixl_agent_name", Metric: "nixl_telemetry_ring_capacity",
		Within: `host_name=~"$host"`, Single: single,
	}
}

// agentsOverview shows all agents beside each other.
func agentsOverview() Dashboard {
	return Dashboard{
		UID: "nixl-agents", Title: "NIXL / Agents",
		Description: "All NIXL agents beside each other: what they move, how fast, and what fails.",
		Variables:   []Variable{hosts, agents(false)},
		Rows: []Row{
			{"Now", []Panel{
				number("Agents", "That report at present.", Count, `count(nixl_telemetry_ring_capacity{@})`),
				number("Sent", "Bytes of completed writes.", BytesPerSecond,
					`sum(rate(nixl_transfer_io_bytes_total{@,network_io_direction="transmit"}[@]))`),
				number("Received", "Bytes of completed reads.", BytesPerSecond,
					`sum(rate(nixl_transfer_io_bytes_total{@,network_io_direction="receive"}[@]))`),
				number("Transfers", "Completed transfers.", PerSecond, `sum(rate(nixl_transfer_requests_total{@}[@]))`),
				number("Errors", "Operations that failed.", PerSecond, `sum(rate(nixl_errors_total{@}[@]))`),
				lossNow,
			}},
			{"Throughput", []Panel{sent, received, transfers}},
			{"Latency and size", []Panel{times, slowest, sizes, postTimes, slowestPost, memory}},
			{"Errors", []Panel{errors.wide(12), errorTypes.wide(12)}},
			{"By agent", []Panel{agentTable()}},
		},
	}
}

// agentTable is a line per agent.
func agentTable() Panel {
	column := func(title string, unit Unit, expr string) Query { return Query{Expr: expr, Legend: title, Unit: unit} }
	const by = `sum by (` + agentLabels + `) `
	return Panel{
		Title: "Agents", Description: "A line per agent; its name leads to its own dashboard.", Kind: Table, Width: 24,
		Queries: []Query{
			column("Sent", BytesPerSecond, by+`(rate(nixl_transfer_io_bytes_total{@,network_io_direction="transmit"}[@]))`),
			column("Received", BytesPerSecond, by+`(rate(nixl_transfer_io_bytes_total{@,network_io_direction="receive"}[@]))`),
			column("Transfers", PerSecond, by+`(rate(nixl_transfer_requests_total{@}[@]))`),
			column("p50", Milliseconds, `histogram_quantile(0.5, sum by (le, `+agentLabels+`) (rate(nixl_transfer_duration_seconds_bucket{@}[@])))`),
			column("p99", Milliseconds, slowest.Queries[0].Expr),
			column("Errors", PerSecond, errors.Queries[0].Expr),
			column("Memory", Memory, memory.Queries[0].Expr),
			column("Ring fill", Share, fill.Queries[0].Expr),
		},
	}
}
