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
	wait        string // how long it must hold; at once if empty
	comment     string
	expr        string
	summary     string
	description string
}

const (
	// of names an agent, with its pod where there is one.
	of = `{{ $labels.nixl_agent_name }} on {{ $labels.host_name }}` +
		`{{ with $labels.k8s_pod_name }} (pod {{ $labels.k8s_namespace_name }}/{{ . }}){{ end }}`
	ofCollector = `{{ with $labels.instance }}{{ . }}{{ else }}{{ $labels.service_instance_id }}{{ end }}`

	byHosts      = `by (` + hostLabels + `)`
	byPeers      = `on (` + peerLabels + `) group_left ()`
	byCollectors = `by (instance, service_instance_id)`
)

func alertRules() []alert {
	return slices.Concat(transferAlerts(), presenceAlerts(), lossAlerts())
}

// increase returns how much a counter of each agent grew.
func increase(metric, window string) string {
	return ofAgents + `(increase(` + metric + `[` + window + `]))`
}

// transferAlerts are about what agents move.
func transferAlerts() []alert {
	in := terms{window: "5m"}
	return []alert{
		{
			name: "NIXLErrorBurst", severity: "critical", wait: "1m",
			comment: "More than a tenth of all operations, and more than a few.",
			expr: in.fillIn(errorRatio(agentLabels)) + " > 0.1\n  and\n" +
				increase("nixl_errors_total", "5m") + " > 10",
			summary:     "{{ $value | humanizePercentage }} of the operations of " + of + " fail",
			description: "`sum by (error_type) (rate(nixl_errors_total[5m]))` shows the status. The dashboard NIXL / Agent does, too.",
		},
		{
			name: "NIXLTransfersSlow", severity: "warning", wait: "5m",
			expr:        in.fillIn(transferTime.quantile("0.99", agentLabels)) + " > 1",
			summary:     "One in 100 transfers of " + of + " takes {{ $value | humanizeDuration }} or more",
			description: "From the start of a transfer until the application saw it complete, over 5 minutes.",
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

// presenceAlerts are about what is gone or can't be read.
func presenceAlerts() []alert {
	return []alert{
		{
			name: "NIXLAgentGone", severity: "info", wait: "1m",
			comment: "The ring of an agent that crashed looks like that of an agent that was stopped.\n" +
				"A job that ends takes all of its agents with it: this is for agents that were\n" +
				"moving data until they exited, while others of their host continue.",
			expr: `max by (` + agentLabels + `) (last_over_time(nixl_agent_up[15m])) == 0` + "\n  and\n" +
				increase("nixl_transfer_requests_total", "15m") + " > 0\n  and on (" + hostLabels + ")\n" +
				`max ` + byHosts + ` (nixl_telemetry_ring_utilization_ratio) > 0`,
			summary:     "Agent " + of + " has exited, others on its host continue",
			description: "It moved data until it exited, less than 15 minutes ago. It crashed, or it was stopped.",
		},
		{
			name: "NIXLNoData", severity: "critical", wait: "5m",
			expr: `count(last_over_time(nixl_telemetry_ring_utilization_ratio[1h]) > 0)` + "\n  unless on ()\n" +
				`group(nixl_telemetry_ring_capacity)`,
			summary:     "No NIXL metrics arrive anymore",
			description: "{{ $value }} agents were writing telemetry when the last report arrived.",
		},
		{
			name: "NIXLCollectorGone", severity: "warning", wait: "5m",
			comment: "An agent that exits is reported for `stale_after`, 5 minutes by default, with a\n" +
				"fill level of 0. A last fill level above 0 is that of an agent that was writing.",
			expr: `max ` + byHosts + ` (last_over_time(nixl_telemetry_ring_utilization_ratio[1h])) > 0` + "\n  unless\n" +
				`group ` + byHosts + ` (nixl_telemetry_ring_capacity)`,
			summary:     "Nothing is reported from {{ $labels.host_name }} anymore",
			description: "Its agents were writing telemetry when the last report arrived. The Collector there is down, or can't export.",
		},
		{
			name: "NIXLRingsRefused", severity: "warning", wait: "10m",
			comment:     "Rings of other users are refused on purpose: allowed_uids.",
			expr:        `sum by (instance, service_instance_id, reason) (otelcol_receiver_nixl_shm_rings{state="refused",reason!="owner"}) > 0`,
			summary:     "The Collector " + ofCollector + " can't open {{ $value }} rings: {{ $labels.reason }}",
			description: "The agents of these rings have no metrics. The Collector's log has the path of each ring and the error.",
		},
	}
}

// lossAlerts are about telemetry that is, or may become, incomplete.
func lossAlerts() []alert {
	return []alert{
		{
			name: "NIXLEventsLost", severity: "warning",
			comment: "Counters of losses start at 0, so that the first loss is an increase.",
			expr: increase("nixl_telemetry_ring_saturations_total", "5m") + " > 0\n  or\n" +
				increase("nixl_telemetry_ring_torn_groups_total", "5m") + " > 0\n  or\n" +
				increase("nixl_telemetry_events_dropped_total", "5m") + " > 0",
			summary: "Telemetry of " + of + " is incomplete",
			description: "A ring was full, or the agent dropped events. The Collector's log names the setting to change: " +
				"usually a larger NIXL_TELEMETRY_BUFFER_SIZE.",
		},
		{
			name: "NIXLRestartLostEvents", severity: "info",
			comment:     "An agent resets its ring when it starts. What was unread is gone.",
			expr:        increase("nixl_telemetry_ring_lossy_restarts_total", "15m") + " > 0",
			summary:     of + " restarted and may have discarded unread events",
			description: "If the agent restarts often, shorten the receiver's run_interval.",
		},
		{
			name: "NIXLEventsTaken", severity: "warning",
			comment:     "Events that another consumer takes aren't counted anywhere.",
			expr:        increase("nixl_telemetry_ring_foreign_reads_total", "5m") + " > 0",
			summary:     "Another consumer takes telemetry of " + of,
			description: "The events that it takes are missing in the totals of the agent.",
		},
		{
			name: "NIXLRingNearlyFull", severity: "warning", wait: "5m",
			expr:        `max by (` + agentLabels + `) (nixl_telemetry_ring_utilization_ratio) > 0.8`,
			summary:     "The ring of " + of + " is {{ $value | humanizePercentage }} full",
			description: "A slightly larger burst loses events. Give the agent a larger NIXL_TELEMETRY_BUFFER_SIZE, or shorten the receiver's run_interval.",
		},
		{
			name: "NIXLCheckpointsFail", severity: "warning",
			expr: `sum ` + byCollectors +
				` (increase({__name__=~"otelcol_receiver_nixl_shm_checkpoint_failures(_total)?"}[15m])) > 0`,
			summary:     "The Collector " + ofCollector + " can't store checkpoints",
			description: "Counting continues. A crash of the Collector may lose events or count them twice. Check the storage extension.",
		},
	}
}

// alerts returns the file of the alerts.
func alerts() []byte {
	var b strings.Builder
	b.WriteString(`# Alerts for NIXL agents, for Prometheus and vmalert. Generated from
# internal/dashboards. README.md next to this file states what a backend needs;
# docs/alerts.md has a section for each alert: what it means and what to do.
#
# severity is critical for what harms jobs or leaves them unwatched, warning for
# what somebody should look at, info for what explains other alerts.

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

// indented writes each line of a text behind an indent.
func indented(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(indent + strings.TrimSuffix(line, "\n") + "\n")
	}
}
