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
	Band string // value of the label band; may be empty
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
)

// groups are the names of the groups of recording rules, in order.
var groups = []string{"nixl-thresholds", "nixl-hosts", "nixl-agents"}

// Rules returns the recording rules, by the name of their group.
func Rules() map[string][]Recorded {
	return map[string][]Recorded{"nixl-thresholds": thresholds(), "nixl-hosts": hostRules(), "nixl-agents": agentRules()}
}

// hostRules returns the sums of each host's agents. Two minutes hold at least
// two points, even at one per minute.
func hostRules() []Recorded {
	by := func(more string) string { return "sum " + grouped(hostLabels, more) }
	lost := func(kind, metric string) Recorded {
		return Recorded{Name: hostLoss, Kind: kind, Expr: by("") + `(rate(` + metric + `[2m]))`}
	}
	return []Recorded{
		{Name: hostAgents, Expr: `count ` + grouped(hostLabels) + `(` + terms{}.fillIn(everyAgent) + `)`},
		{Name: hostBytes, Expr: by("nixl_transfer_direction") + `(rate(nixl_transfer_io_bytes_total[2m]))`},
		{Name: hostRequests, Expr: by("nixl_transfer_direction") + `(rate(nixl_transfer_requests_total[2m]))`},
		{Name: hostBuckets, Expr: by("le, vmrange") + `(rate(nixl_transfer_duration_seconds_bucket[2m]))`},
		{Name: hostTimes, Expr: by("") + `(rate(nixl_transfer_duration_seconds[2m]))`},
		{Name: hostErrors, Expr: by("error_type") + `(rate(nixl_errors_total[2m]))`},
		{Name: hostMemory, Expr: by("") + `(nixl_memory_usage_bytes)`},
		{Name: hostFill, Expr: `max ` + grouped(hostLabels) + `(nixl_telemetry_ring_utilization_ratio)`},
		lost("drains of a full ring", "nixl_telemetry_ring_saturations_total"),
		lost("torn transfers", "nixl_telemetry_ring_torn_groups_total"),
		lost("dropped by agents", "nixl_telemetry_events_dropped_total"),
		lost("taken by other consumers", "nixl_telemetry_ring_foreign_reads_total"),
	}
}

// rules returns the file of the recording rules.
func rules() []byte {
	var b strings.Builder
	b.WriteString(`# Recording rules for Prometheus and vmalert. Generated from internal/dashboards.
#
#   nixl-thresholds  what the alerts compare with: change the numbers here
#   nixl-hosts       sums of each host's agents, for the dashboard "NIXL / Cluster"
#   nixl-agents      speed and state of each agent, compared with its peers and with
#                    its past, for the alerts and the other dashboards

groups:
`)
	all := Rules()
	for _, group := range groups {
		fmt.Fprintf(&b, "  - name: %s\n    rules:\n", group)
		for _, r := range all[group] {
			fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", r.Name, r.Expr)
			if r.Kind != "" {
				fmt.Fprintf(&b, "        labels: {kind: %s}\n", r.Kind)
			}
			if r.Band != "" {
				fmt.Fprintf(&b, "        labels: {band: %s}\n", r.Band)
			}
		}
	}
	return []byte(b.String())
}
