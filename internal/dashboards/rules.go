// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strings"
)

// Recorded is a recording rule.
type Recorded struct {
	Name string
	Kind string // value of the label kind; may be empty
	Expr string
}

// The names contain the remaining labels and the time range of a rate. For a histogram, a backend
// has either the rates of buckets or those of the native histogram.
const (
	hostAgents   = "host:nixl_agents:count"
	hostBytes    = "host_direction:nixl_transfer_io_bytes:rate2m"
	hostRequests = "host_direction:nixl_transfer_requests:rate2m"
	hostBuckets  = "host_le:nixl_transfer_duration_seconds_bucket:rate2m"
	hostTimes    = "host:nixl_transfer_duration_seconds:rate2m"
	hostErrors   = "host_type:nixl_errors:rate2m"
	hostMemory   = "host:nixl_memory_usage_bytes:sum"
	hostFill     = "host:nixl_telemetry_ring_utilization_ratio:max"
	hostLoss     = "host_kind:nixl_loss:rate2m"

	agentMedian = "agent:nixl_transfer_throughput:median5m"
	agentMean   = "agent:nixl_transfer_throughput:mean5m"
	peersMedian = "peers:nixl_transfer_throughput:median5m"
	peersSpread = "peers:nixl_transfer_throughput:mad5m"
)

// Rules returns the recording rules, by the name of their group.
func Rules() map[string][]Recorded {
	return map[string][]Recorded{"nixl-hosts": hostRules(), "nixl-stragglers": stragglerRules()}
}

// hostRules returns the sums of each host's agents. Two minutes hold at least
// two points, even at one per minute.
func hostRules() []Recorded {
	by := func(more string) string { return "sum " + grouped(hostLabels, more) }
	lost := func(kind, metric string) Recorded {
		return Recorded{hostLoss, kind, by("") + `(rate(` + metric + `[2m]))`}
	}
	return []Recorded{
		{hostAgents, "", `count ` + grouped(hostLabels) + `(nixl_telemetry_ring_capacity)`},
		{hostBytes, "", by("nixl_transfer_direction") + `(rate(nixl_transfer_io_bytes_total[2m]))`},
		{hostRequests, "", by("nixl_transfer_direction") + `(rate(nixl_transfer_requests_total[2m]))`},
		{hostBuckets, "", by("le, vmrange") + `(rate(nixl_transfer_duration_seconds_bucket[2m]))`},
		{hostTimes, "", by("") + `(rate(nixl_transfer_duration_seconds[2m]))`},
		{hostErrors, "", by("error_type") + `(rate(nixl_errors_total[2m]))`},
		{hostMemory, "", by("") + `(nixl_memory_usage_bytes)`},
		{hostFill, "", `max ` + grouped(hostLabels) + `(nixl_telemetry_ring_utilization_ratio)`},
		lost("drains of a full ring", "nixl_telemetry_ring_saturations_total"),
		lost("torn transfers", "nixl_telemetry_ring_torn_groups_total"),
		lost("dropped by agents", "nixl_telemetry_events_dropped_total"),
		lost("taken by other consumers", "nixl_telemetry_ring_foreign_reads_total"),
	}
}

// stragglerRules returns rules that compare each agent with its peers: the median and the mean
// throughput of its transfers, the median of the peers' medians, and the median of the peers'
// absolute deviations from it. The rules omit agents without transfers, and jobs with fewer than
// four agents.
func stragglerRules() []Recorded {
	in := terms{window: "5m"}
	peers := grouped(peerLabels)
	return []Recorded{
		{agentMedian, "", in.fillIn(transferSpeed.quantile("0.5", agentLabels)) + ` > 0`},
		{agentMean, "", in.fillIn(meanSpeed())},
		{peersMedian, "", `quantile ` + peers + `(0.5, ` + agentMedian + `) and count ` + peers + `(` + agentMedian + `) >= 4`},
		{peersSpread, "", `quantile ` + peers + `(0.5, abs(` + agentMedian + ` - on (` + peerLabels + `) group_left () ` + peersMedian + `))`},
	}
}

// rules returns the file of the recording rules.
func rules() []byte {
	var b strings.Builder
	b.WriteString(`# Recording rules for Prometheus and vmalert: sums of each host's agents, for the
# dashboard "NIXL / Cluster", and the speed of agents compared with their peers,
# for the alert NIXLStraggler. Generated from internal/dashboards.

groups:
`)
	all := Rules()
	for _, group := range []string{"nixl-hosts", "nixl-stragglers"} {
		fmt.Fprintf(&b, "  - name: %s\n    rules:\n", group)
		for _, r := range all[group] {
			fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", r.Name, r.Expr)
			if r.Kind != "" {
				fmt.Fprintf(&b, "        labels: {kind: %s}\n", r.Kind)
			}
		}
	}
	return []byte(b.String())
}
