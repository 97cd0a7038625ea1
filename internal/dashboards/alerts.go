// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// alert is an alerting rule.
type alert struct {
	name        string
	severity    string
	wait        string // how long the condition must hold; default: none
	comment     string
	expr        string
	summary     string
	description string
}

const (
	// of names an agent, with its pod if it has one.
	of = `{{ $labels.nixl_agent_name }} on {{ $labels.host_name }}` +
		`{{ with $labels.k8s_pod_name }} (pod {{ $labels.k8s_namespace_name }}/{{ . }}){{ end }}`
	ofCollector = `{{ with $labels.instance }}{{ . }}{{ else }}{{ $labels.service_instance_id }}{{ end }}`

	byHosts      = `by (` + hostLabels + `)`
	byPeers      = `on (` + peerLabels + `) group_left ()`
	byCollectors = `by (instance, service_instance_id)`

	exited  = `max by (` + agentLabels + `) (last_over_time(nixl_agent_up[15m])) == 0`
	running = `(last_over_time(nixl_agent_up[1h]) or last_over_time(nixl_telemetry_ring_utilization_ratio[1h]))`
	present = `(nixl_agent_up or nixl_telemetry_ring_capacity)`
)

func alertRules() []alert {
	return slices.Concat(transferAlerts(), presenceAlerts(), lossAlerts())
}

// increase returns how much a counter of each agent grew.
func increase(metric, window string) string {
	return ofAgents + `(increase(` + metric + `[` + window + `]))`
}

// transferAlerts returns alerts about transfers.
func transferAlerts() []alert {
	in := terms{window: "5m"}
	return []alert{
		{
			name: "NIXLErrorBurst", severity: "critical", wait: "1m",
			comment: "More than a tenth of all operations fail, and more than 10 in total.",
			expr: in.fillIn(errorRatio(agentLabels)) + " > 0.1\n  and\n" +
				increase("nixl_errors_total", "5m") + " > 10",
			summary:     "{{ $value | humanizePercentage }} of the operations of " + of + " fail",
			description: "To see the NIXL status, use `sum by (error_type) (rate(nixl_errors_total[5m]))` or the dashboard NIXL / Agent.",
		},
		{
			name: "NIXLTransfersSlow", severity: "warning", wait: "5m",
			expr:        in.fillIn(transferTime.quantile("0.99", agentLabels)) + " > 1",
			summary:     "One in 100 transfers of " + of + " takes {{ $value | humanizeDuration }} or more",
			description: "The time from the start of a transfer until the application saw it complete, over 5 minutes.",
		},
		{
			name: "NIXLStraggler", severity: "warning", wait: "10m",
			comment: "Needs rules.yaml. The median must be far below that of the peers: by more than\n" +
				"three standard deviations, estimated from the median absolute deviation, and by\n" +
				"half. The mean must agree, because it doesn't depend on the bounds of buckets.",
			expr: agentMedian + " < " + byPeers + " (" + peersMedian + " - 3 * 1.4826 * " + peersSpread + ")\n  and\n" +
				agentMedian + " < " + byPeers + " (0.5 * " + peersMedian + ")\n  and\n" +
				agentMean + " < " + byPeers + " (0.5 * quantile " + grouped(peerLabels) + "(0.5, " + agentMean + "))",
			summary: "Transfers of " + of + " run at {{ $value | humanize }}B/s, less than half as fast as those of its peers",
			description: "The agent's median throughput is far below that of the other agents of its job. " +
				"Check its GPU, NIC, NUMA placement and link.",
		},
		{
			name: "NIXLPostTimeHigh", severity: "warning", wait: "10m",
			expr: in.fillIn(ratio(postTime, transferTime, agentLabels)) + " > 0.5\n  and\n" +
				increase("nixl_transfer_requests_total", "5m") + " > 10",
			summary:     of + " spends {{ $value | humanizePercentage }} of its transfer time on posting",
			description: "Preparing descriptors takes longer than moving the data. Transfer fewer, larger blocks.",
		},
	}
}

// presenceAlerts returns alerts about agents, hosts and rings whose metrics are missing.
func presenceAlerts() []alert {
	return []alert{
		{
			name: "NIXLAgentGone", severity: "info", wait: "2m",
			comment: "A crash can't be distinguished from a normal stop. When a job ends, all of its\n" +
				"agents exit, so this alert is only for agents that moved data until they exited\n" +
				"while other agents on their host continue to move data.",
			expr: exited + "\n  and\n" +
				increase("nixl_transfer_requests_total", "15m") + " > 0\n  and on (" + hostLabels + ")\n" +
				"(\n" +
				"  " + increase("nixl_transfer_requests_total", "2m") + " > 0\n    unless\n" +
				"  " + exited + "\n" +
				")",
			summary:     "Agent " + of + " has exited while others on its host continue",
			description: "It moved data until it exited, less than 15 minutes ago. It crashed or was stopped.",
		},
		{
			name: "NIXLNoData", severity: "critical", wait: "5m",
			comment:     "See NIXLCollectorGone.",
			expr:        `count(` + running + ` > 0)` + "\n  unless on ()\n" + `group ` + present,
			summary:     "NIXL metrics no longer arrive",
			description: "{{ $value }} agents were running when the last report arrived.",
		},
		{
			name: "NIXLCollectorGone", severity: "warning", wait: "5m",
			comment: "An agent that exits is still reported with nixl_agent_up 0, so a last value of 1\n" +
				"means that the agent was running. Where nixl_agent_up is absent, a fill level\n" +
				"above 0 means that the agent was writing. Only agents with rings have a fill level.",
			expr:        `max ` + byHosts + ` ` + running + ` > 0` + "\n  unless\n" + `group ` + byHosts + ` ` + present,
			summary:     "NIXL metrics from {{ $labels.host_name }} no longer arrive",
			description: "Its agents were running when the last report arrived. The Collector there is down or can't export.",
		},
		{
			name: "NIXLRingsRefused", severity: "warning", wait: "10m",
			comment:     "The setting allowed_uids refuses rings of other owners on purpose.",
			expr:        `sum by (instance, service_instance_id, reason) (otelcol_receiver_nixl_shm_rings{state="refused",reason!="owner"}) > 0`,
			summary:     "The Collector " + ofCollector + " can't open {{ $value }} rings: {{ $labels.reason }}",
			description: "The agents of these rings have no metrics. The Collector's log contains the path of each ring and the error.",
		},
	}
}

// lossAlerts returns alerts about telemetry that is, or may become, incomplete.
func lossAlerts() []alert {
	return []alert{
		{
			name: "NIXLEventsLost", severity: "warning",
			comment: "Counters of losses start at 0, so the first loss is an increase.",
			expr: increase("nixl_telemetry_ring_saturations_total", "5m") + " > 0\n  or\n" +
				increase("nixl_telemetry_ring_torn_groups_total", "5m") + " > 0\n  or\n" +
				increase("nixl_telemetry_events_dropped_total", "5m") + " > 0",
			summary: "Telemetry of " + of + " is incomplete",
			description: "A ring was full, or the agent dropped events. The Collector's log names the setting to change: " +
				"usually a larger NIXL_TELEMETRY_BUFFER_SIZE.",
		},
		{
			name: "NIXLRestartLostEvents", severity: "info",
			comment:     "A starting agent resets its ring and discards unread events.",
			expr:        increase("nixl_telemetry_ring_lossy_restarts_total", "15m") + " > 0",
			summary:     of + " restarted and may have discarded unread events",
			description: "If the agent restarts often, shorten the receiver's run_interval.",
		},
		{
			name: "NIXLEventsTaken", severity: "warning",
			comment:     "Events that another process consumes aren't counted.",
			expr:        increase("nixl_telemetry_ring_foreign_reads_total", "5m") + " > 0",
			summary:     "Another process consumes the telemetry of " + of,
			description: "Events that it consumes first are missing from the agent's totals.",
		},
		{
			name: "NIXLRingNearlyFull", severity: "warning", wait: "5m",
			expr:        `max by (` + agentLabels + `) (nixl_telemetry_ring_utilization_ratio) > 0.8`,
			summary:     "The ring of " + of + " is {{ $value | humanizePercentage }} full",
			description: "A slightly larger burst loses events. Set a larger NIXL_TELEMETRY_BUFFER_SIZE for the agent, or shorten the receiver's run_interval.",
		},
		{
			name: "NIXLCheckpointsFail", severity: "warning",
			expr: `sum ` + byCollectors +
				` (increase({__name__=~"otelcol_receiver_nixl_shm_checkpoint_failures(_total)?"}[15m])) > 0`,
			summary:     "The Collector " + ofCollector + " can't store checkpoints",
			description: "Counting continues, but a crash of the Collector may lose events or count them twice. Check the storage extension.",
		},
	}
}

// alerts returns the file of the alerts.
func alerts() []byte {
	var b strings.Builder
	b.WriteString(`# Alerts for NIXL agents, for Prometheus and vmalert. Generated from
# internal/dashboards. README.md in this directory lists the requirements of a
# backend; docs/alerts.md explains each alert and what to do.
#
# Severity: critical means that jobs are affected or not monitored, warning means
# that someone should investigate, and info helps explain other alerts.

groups:
  - name: nixl
    rules:
`)
	for i, a := range alertRules() {
		if i > 0 {
			b.WriteByte('\n')
		}
		indented(&b, "      # ", a.comment)
		fmt.Fprintf(&b, "      - alert: %s\n        expr: |\n", a.name)
		indented(&b, "          ", a.expr)
		if a.wait != "" {
			fmt.Fprintf(&b, "        for: %s\n", a.wait)
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n", a.severity)
		fmt.Fprintf(&b, "        annotations:\n          runbook_url: https://github.com/nixl-otel/nixl-otel/blob/main/docs/alerts.md#%s\n",
			strings.ToLower(a.name))
		fmt.Fprintf(&b, "          summary: %s\n          description: %s\n", strconv.Quote(a.summary), strconv.Quote(a.description))
	}
	return []byte(b.String())
}

// indented writes a text with an indent before each line.
func indented(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(indent + strings.TrimSuffix(line, "\n") + "\n")
	}
}
