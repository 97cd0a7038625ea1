package dashboards

import (
	"fmt"
	"strings"
)

// Recorded is a recording rule: sums of a host's agents, which a dashboard of
// very many agents can afford to ask for.
type Recorded struct {
	Name string
	Kind string // value of the label kind, if it has one
	Expr string
}

// The names say what is left of the labels, and over which time a rate is.
const (
	hostAgents   = "host:nixl_agents:count"
	hostBytes    = "host_direction:nixl_transfer_io_bytes:rate2m"
	hostRequests = "host_direction:nixl_transfer_requests:rate2m"
	hostTimes    = "host_le:nixl_transfer_duration_seconds_bucket:rate2m"
	hostErrors   = "host_type:nixl_errors:rate2m"
	hostMemory   = "host:nixl_memory_usage_bytes:sum"
	hostFill     = "host:nixl_telemetry_ring_utilization_ratio:max"
	hostLoss     = "host_kind:nixl_loss:rate2m"
)

// Rules are the recording rules. Two minutes hold two points at least, also
// where there is one per minute.
func Rules() []Recorded {
	lost := func(kind, metric string) Recorded {
		return Recorded{hostLoss, kind, `sum by (host_name) (rate(` + metric + `[2m]))`}
	}
	return []Recorded{
		{hostAgents, "", `count by (host_name) (nixl_telemetry_ring_capacity)`},
		{hostBytes, "", `sum by (host_name, nixl_transfer_direction) (rate(nixl_transfer_io_bytes_total[2m]))`},
		{hostRequests, "", `sum by (host_name, nixl_transfer_direction) (rate(nixl_transfer_requests_total[2m]))`},
		{hostTimes, "", `sum by (host_name, le) (rate(nixl_transfer_duration_seconds_bucket[2m]))`},
		{hostErrors, "", `sum by (host_name, error_type) (rate(nixl_errors_total[2m]))`},
		{hostMemory, "", `sum by (host_name) (nixl_memory_usage_bytes)`},
		{hostFill, "", `max by (host_name) (nixl_telemetry_ring_utilization_ratio)`},
		lost("drains of a full ring", "nixl_telemetry_ring_saturations_total"),
		lost("torn transfers", "nixl_telemetry_ring_torn_groups_total"),
		lost("dropped by agents", "nixl_telemetry_events_dropped_total"),
		lost("taken by others", "nixl_telemetry_ring_foreign_reads_total"),
	}
}

// rules is the file of the recording rules.
func rules() []byte {
	var b strings.Builder
	b.WriteString(`# Recording rules for Prometheus and vmalert: the sums of each host's agents, for
# the dashboard "NIXL / Cluster". Generated from internal/dashboards.

groups:
  - name: nixl-hosts
    rules:
`)
	for _, r := range Rules() {
		fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", r.Name, r.Expr)
		if r.Kind != "" {
			fmt.Fprintf(&b, "        labels: {kind: %s}\n", r.Kind)
		}
	}
	return []byte(b.String())
}
