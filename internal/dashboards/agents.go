package dashboards

// agentLabels tell agents apart: two hosts may have agents of one name.
const agentLabels = "host_name, nixl_agent_name"

const (
	ofAgents   = `sum by (` + agentLabels + `) `
	bytesSent  = `(rate(nixl_transfer_io_bytes_total{@,nixl_transfer_direction="transmit"}[@]))`
	bytesRead  = `(rate(nixl_transfer_io_bytes_total{@,nixl_transfer_direction="receive"}[@]))`
	ofRequests = `(rate(nixl_transfer_requests_total{@}[@]))`
	ofErrors   = `(rate(nixl_errors_total{@}[@]))`
)

// What agents do, side by side.
var (
	sent = ranked("Sent", "Bytes of completed writes. The agent that starts a transfer counts it.",
		BytesPerSecond, ofAgents+bytesSent, byAgent)
	received = ranked("Received", "Bytes of completed reads. The agent that starts a transfer counts it.",
		BytesPerSecond, ofAgents+bytesRead, byAgent)
	transfers = ranked("Transfers", "Completed transfers, in both directions.", Requests, ofAgents+ofRequests, byAgent)
	errors    = ranked("Errors", "Operations that failed.", Operations, ofAgents+ofErrors, byAgent)
	slowest   = ranked("Transfer time by agent, 99th percentile",
		"From the start of a transfer until the application saw it complete.", Milliseconds,
		`histogram_quantile(0.99, sum by (le, `+agentLabels+`) (rate(nixl_transfer_duration_seconds_bucket{@}[@])))`, byAgent)
	slowestPost = ranked("Post time by agent, 99th percentile",
		"From the start of a transfer until it was posted to the backend.", Microseconds,
		`histogram_quantile(0.99, sum by (le, `+agentLabels+`) (rate(nixl_transfer_post_duration_seconds_bucket{@}[@])))`, byAgent)
	memory = ranked("Registered memory", "Memory registered with each agent at present.", Memory,
		ofAgents+`(now(nixl_memory_usage_bytes{@}))`, byAgent)
)

// What they do together.
var (
	times = quantiles("Transfer time",
		"From the start of a transfer until the application saw it complete.", Milliseconds, "nixl_transfer_duration_seconds")
	postTimes = quantiles("Post time",
		"From the start of a transfer until it was posted to the backend.", Microseconds, "nixl_transfer_post_duration_seconds")
	speeds = Panel{
		Title:       "Throughput of a transfer",
		Description: "Bytes of each transfer divided by its time. Far below the link's speed, the transfer waited or was small.",
		Unit:        BytesPerSecond,
		Queries: []Query{
			{Expr: `histogram_quantile(0.5, sum by (le) (rate(nixl_transfer_throughput_bytes_per_second_bucket{@}[@])))`, Legend: "median"},
			{Expr: `histogram_quantile(0.1, sum by (le) (rate(nixl_transfer_throughput_bytes_per_second_bucket{@}[@])))`, Legend: "slowest 10 %"},
			{Expr: `histogram_quantile(0.01, sum by (le) (rate(nixl_transfer_throughput_bytes_per_second_bucket{@}[@])))`, Legend: "slowest 1 %"},
		},
	}
	sizes = lines("Transfer size, median", "By direction.", Bytes,
		`histogram_quantile(0.5, sum by (le, nixl_transfer_direction) (rate(nixl_transfer_size_bytes_bucket{@}[@])))`, byDirection)
	throughput = lines("Throughput", "Bytes of completed transfers.", BytesPerSecond,
		`sum by (nixl_transfer_direction) (rate(nixl_transfer_io_bytes_total{@}[@]))`, byDirection)
	requests = lines("Transfers", "Completed transfers.", Requests,
		`sum by (nixl_transfer_direction) `+ofRequests, byDirection)
	errorTypes = lines("Errors by type", "Operations that failed, by NIXL's status. No line is no error.", Operations,
		`sum by (error_type) `+ofErrors+` > 0`, byError)
)

var hosts = Variable{Name: "host", Label: "Host", Key: "host_name", Metric: "nixl_telemetry_ring_capacity"}

var agents = Variable{
	Name: "agent", Label: "Agent", Key: "nixl_agent_name", Metric: "nixl_telemetry_ring_capacity", Within: `host_name=~"$host"`,
}

// agentsOverview shows the agents of some hosts beside each other.
func agentsOverview() Dashboard {
	return Dashboard{
		UID: "nixl-agents", Title: "NIXL / Agents",
		Description: "NIXL agents together and beside each other: what they move, how fast, and what fails.",
		Refresh:     "30s",
		Variables:   []Variable{hosts, agents, shown("Agents")},
		Rows: []Row{
			{"Now", []Panel{
				number("Agents", "That report at present.", Count, `count(nixl_telemetry_ring_capacity{@})`),
				number("Sent", "Bytes of completed writes.", BytesPerSecond, `sum`+bytesSent),
				number("Received", "Bytes of completed reads.", BytesPerSecond, `sum`+bytesRead),
				number("Transfers", "Completed transfers.", Requests, `sum`+ofRequests),
				number("Errors", "Operations that failed.", Operations, `sum`+ofErrors),
				lossNow,
			}},
			{"All agents", []Panel{throughput, requests, errorTypes, times, postTimes, sizes}},
			{"Hosts with the highest values", []Panel{
				ranked("Sent by host", "Bytes of completed writes.", BytesPerSecond, `sum by (host_name) `+bytesSent, byHost),
				ranked("Received by host", "Bytes of completed reads.", BytesPerSecond, `sum by (host_name) `+bytesRead, byHost),
			}},
			{"Agents with the highest values", []Panel{sent, received, transfers, errors, slowest, slowestPost, memory, fill}},
			{"Busiest agents", []Panel{agentTable()}},
		},
	}
}

// agentTable is a line for each of the agents that move most. One that moves
// nothing counts too.
func agentTable() Panel {
	const busiest = ofAgents + `(rate(nixl_transfer_io_bytes_total{@}[@])) or 0 * ` + ofAgents + `(nixl_telemetry_ring_capacity{@})`
	column := func(title string, unit Unit, expr string) Query {
		return Query{Expr: expr, Legend: title, Unit: unit, Rank: busiest}
	}
	return Panel{
		Title: "Busiest agents", Description: "Those that move most. The name of one leads to its own dashboard.", Kind: Table, Width: 24,
		Queries: []Query{
			column("Sent", BytesPerSecond, sent.Queries[0].Expr),
			column("Received", BytesPerSecond, received.Queries[0].Expr),
			column("Transfers", Requests, transfers.Queries[0].Expr),
			column("p50", Milliseconds, `histogram_quantile(0.5, sum by (le, `+agentLabels+`) (rate(nixl_transfer_duration_seconds_bucket{@}[@])))`),
			column("p99", Milliseconds, slowest.Queries[0].Expr),
			column("Errors", Operations, errors.Queries[0].Expr),
			column("Memory", Memory, memory.Queries[0].Expr),
			column("Ring fill", Share, fill.Queries[0].Expr),
		},
	}
}
