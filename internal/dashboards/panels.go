// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	ofAgents   = `sum by (` + agentLabels + `) `
	bytesSent  = `(rate(nixl_transfer_io_bytes_total{@,nixl_transfer_direction="transmit"}[@]))`
	bytesRead  = `(rate(nixl_transfer_io_bytes_total{@,nixl_transfer_direction="receive"}[@]))`
	ofRequests = `(rate(nixl_transfer_requests_total{@}[@]))`
	ofErrors   = `(rate(nixl_errors_total{@,error_type!="canceled"}[@]))`
)

// errorRatio returns the share of failed operations. Those that the application canceled didn't fail.
// An agent without completed transfers has no series of requests.
func errorRatio(by string) string {
	return failed("sum "+grouped(by)+ofErrors, "sum "+grouped(by)+ofRequests)
}

func failed(errors, requests string) string {
	return errors + " / (" + requests + " + " + errors + " or " + errors + ")"
}

// everyAgent has a series for each agent: with a ring, with stores, or with both.
const everyAgent = `group by (` + agentLabels + `) (nixl_agent_up{@} or nixl_telemetry_ring_capacity{@})`

const noErrors = "No errors"

// Panels that compare agents.
var (
	sent = ranked("Sent by agent", "Bytes of completed writes. The agent that initiates a transfer counts it.",
		BytesPerSecond, ofAgents+bytesSent, byAgent)
	received = ranked("Received by agent", "Bytes of completed reads. The agent that initiates a transfer counts it.",
		BytesPerSecond, ofAgents+bytesRead, byAgent)
	errorRatios = ranked("Highest error ratio", "Failed operations as a share of all operations.",
		Share, `now(`+agentErrors+`{@})`, byAgent)
	stragglers = lowest("Slowest agents compared with their peers",
		"Bytes per second of transfer time, divided by the median of the other agents of the same job with similar sizes. 100% is as fast as the peers.", Share,
		`now(`+agentRelative+`{@})`, byAgent)
	memory = ranked("Registered memory", "Memory registered with each agent.", Memory,
		ofAgents+`(now(nixl_memory_usage_bytes{@}))`, byAgent)
	fill = ranked("Ring fill", "Highest fill level that a drain found. At 100%, the agent loses events; keep it below 50%.",
		Share, `max by (`+agentLabels+`) (max_over_time(nixl_telemetry_ring_utilization_ratio{@}[@]))`, byAgent).upTo(1)
	lossByAgent = ranked("Loss by agent", "Signs that events were lost: full rings, dropped events, and other consumers.", PerSecond,
		ofAgents+`(rate(nixl_telemetry_ring_saturations_total{@}[@])) + `+ofAgents+`(rate(nixl_telemetry_events_dropped_total{@}[@])) + `+
			ofAgents+`(rate(nixl_telemetry_ring_foreign_reads_total{@}[@]))`, byAgent)
	restarts = ranked("Restarts", "Restarts of agents within 5 minutes.", Count,
		ofAgents+`(increase(nixl_telemetry_ring_restarts_total{@}[5m]))`, byAgent)
)

// Panels of all agents together.
var (
	throughput = lines("Throughput", "Bytes of completed transfers.", BytesPerSecond,
		`sum by (nixl_transfer_direction) (rate(nixl_transfer_io_bytes_total{@}[@]))`, byDirection)
	requests = lines("Transfers", "Completed transfers.", Requests,
		`sum by (nixl_transfer_direction) `+ofRequests, byDirection)
	times = quantiles("Transfer time",
		"From the start of a transfer until the application saw it complete.", Seconds, transferTime.quantile)
	postTimes = quantiles("Post time",
		"From the start of a transfer until it was posted to the backend.", Seconds, postTime.quantile)
	speeds = Panel{
		Title:       "Throughput of single transfers",
		Description: "Bytes of each transfer divided by its time. Values far below the speed of the link mean that transfers waited or were small.",
		Unit:        BytesPerSecond,
		Queries: []Query{
			{Expr: transferSpeed.quantile("0.5", ""), Legend: "median"},
			{Expr: transferSpeed.quantile("0.1", ""), Legend: "slowest 10%"},
			{Expr: transferSpeed.quantile("0.01", ""), Legend: "slowest 1%"},
		},
	}
	errorTypes = lines("Errors by type", "Failed operations by NIXL status.", Operations,
		`sum by (error_type) (rate(nixl_errors_total{@}[@])) > 0`, byError).ifEmpty(noErrors)
	postShare = lines("Share of post time", "Post time divided by transfer time. Above 50%, preparing descriptors costs more than moving the data.",
		Share, ratio(postTime, transferTime, ""), "post time")
	timeMap = distribution("Transfer time, distribution", "Transfers per second, by time.", Seconds, transferTime)
	loss    = Panel{
		Title: "Loss", Description: "Signs that events were lost. All lines should be at 0.", Unit: PerSecond,
		Queries: []Query{
			{Expr: `sum(rate(nixl_telemetry_ring_saturations_total{@}[@]))`, Legend: "drains of a full ring"},
			{Expr: `sum(rate(nixl_telemetry_ring_torn_groups_total{@}[@]))`, Legend: "torn transfers"},
			{Expr: `sum(rate(nixl_telemetry_events_dropped_total{@}[@]))`, Legend: "dropped by agents"},
			{Expr: `sum(rate(nixl_telemetry_ring_foreign_reads_total{@}[@]))`, Legend: "taken by other consumers"},
		},
	}
)

// Numbers.
var (
	agentsNow = number("Agents", "Agents that report.", Count, `count(`+everyAgent+`)`)
	downNow   = number("Agents down", "Agents that have exited and are still reported.", Count,
		`count(nixl_agent_up{@} == 0) or vector(0)`).bad(1)
	// Only some layouts show torn transfers.
	lossNow = number("Loss", "Sum of all signs that events were lost.", PerSecond,
		`sum(rate(nixl_telemetry_ring_saturations_total{@}[@])) + sum(rate(nixl_telemetry_events_dropped_total{@}[@])) + `+
			`sum(rate(nixl_telemetry_ring_foreign_reads_total{@}[@])) + (sum(rate(nixl_telemetry_ring_torn_groups_total{@}[@])) or vector(0))`).bad(1e-9)
)

// Recorded series, which dashboards/rules.yaml defines.
const (
	agentRequests = "agent:nixl_transfer_requests:rate3m"
	agentBytes    = "agent:nixl_transfer_io_bytes:rate3m"
	agentSpeed    = "agent:nixl_transfer_throughput:mean3m"
	agentRelative = "agent:nixl_transfer_throughput:relative"
	agentErrors   = "agent:nixl_errors:ratio4m"
	agentFinding  = "agent:nixl_finding:value" // of each agent that is wrong; the label finding says what

	hostFinding  = "host:nixl_finding:value" // of each host that is wrong
	hostAgents   = "host:nixl_agents:count"
	hostBytes    = "host_direction:nixl_transfer_io_bytes:rate2m"
	hostRequests = "host_direction:nixl_transfer_requests:rate2m"
	hostBuckets  = "host_le:nixl_transfer_duration_seconds_bucket:rate2m"
	hostTimes    = "host:nixl_transfer_duration_seconds:rate2m"
	hostErrors   = "host_type:nixl_errors:rate2m"
	hostMemory   = "host:nixl_memory_usage_bytes:sum"
	hostFill     = "host:nixl_telemetry_ring_utilization_ratio:max"
	hostLoss     = "host_kind:nixl_loss:rate2m"
)
