// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// Recorded series, which dashboards/rules.yaml defines.
const (
	agentRequests = "agent:nixl_transfer_requests:rate3m"
	agentBytes    = "agent:nixl_transfer_io_bytes:rate3m"
	agentSpeed    = "agent:nixl_transfer_throughput:mean3m"
	agentRelative = "agent:nixl_transfer_throughput:relative"
	agentErrors   = "agent:nixl_errors:ratio4m"
	agentFinding  = "agent:nixl_finding:value" // of each agent that is wrong; the label finding says what

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
