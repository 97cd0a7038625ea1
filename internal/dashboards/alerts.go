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
	byCollectors = `by (instance, service_instance_id)`

	ofTheJob = `{{ $labels.service_name }}{{ with $labels.k8s_namespace_name }} in {{ . }}{{ end }}`

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

// How to see the transfers behind an alert. Both commands only observe.
const (
	seeTransfers = ` On the agent's host, "nixlring why" explains the problem and "nixlring slow" prints its slow transfers; ` +
		`the slow-transfer log has them as nixl.transfer.slow.`
	seeErrors = ` On the hosts, "nixlring why" explains the problem and "nixlring read RING --follow --category error" prints the errors; ` +
		`the slow-transfer log has them as nixl.error.`
)

// transferAlerts returns alerts about transfers that are slow or fail. Package diagnose has the same
// definitions.
func transferAlerts() []alert {
	return slices.Concat(slowAlerts(), jobAlerts())
}

// slowAlerts returns alerts about single agents.
func slowAlerts() []alert {
	hold := span(windows.Hold)
	return []alert{
		{
			name: "NIXLStraggler", severity: "warning", wait: hold,
			comment: "Far slower than the agents of the same job with similar sizes.",
			expr:    agentStraggler,
			summary: "Transfers of " + of + " run at {{ $value | humanizePercentage }} of the speed of its peers",
			description: "Peers are the agents of the same job with transfers of a similar size. " +
				"Check the agent's NIC (negotiated speed, error counters), GPU and NUMA placement." + seeTransfers,
		},
		{
			name: "NIXLAgentSlower", severity: "warning", wait: hold,
			comment: "Far slower than its own past, but neither compared with peers nor part of a slow job.",
			expr: agentSlower + "\n  unless\n" + agentStraggler + "\n  unless on (" + peerLabels + ")\n" +
				jobSlowerShare,
			summary:     "Transfers of " + of + " run at {{ $value | humanizePercentage }} of its own past speed",
			description: "The past is the median of the last day. Check the agent's NIC, GPU and NUMA placement, and what changed." + seeTransfers,
		},
		{
			name: "NIXLAgentStalled", severity: "critical",
			comment: "NIXL reports completed transfers only, so an agent that hangs reports nothing.",
			expr:    agentStalled + "\n  and on (" + peerLabels + ")\n" + jobActive,
			summary: of + " runs, but completes no transfers, unlike its peers",
			description: "Before, it completed {{ $value | humanize }} transfers per second, regularly. " +
				"Look at the stacks of its process and at the transport's log." + seeTransfers,
		},
		{
			name: "NIXLPostTimeHigh", severity: "warning", wait: hold,
			expr:        agentPosting,
			summary:     of + " spends {{ $value | humanizePercentage }} of its transfer time on posting",
			description: "Preparing descriptors takes longer than moving the data. Transfer fewer, larger blocks." + seeTransfers,
		},
		{
			name: "NIXLSmallBehindLarge", severity: "warning", wait: hold,
			comment: "Most transfers are far smaller than the mean, but take as long, although some are fast.",
			expr:    agentWaiting,
			summary: "Small transfers of " + of + " wait behind large ones",
			description: "Most transfers are far smaller than the mean size, but take {{ $value | humanizePercentage }} of the mean time. " +
				"Split large transfers, or give small ones an agent or a NIC of their own." + seeTransfers,
		},
	}
}

const (
	jobSlowerShare = `(count ` + byJob + ` (` + agentSlower + `) > 0.5 * count ` + byJob + ` (` + agentSpeed + ` and ` + agentPastSpeed + `))`
	jobActive      = `count ` + byJob + ` (` + agentRequests + ` > 0)`
)

// jobAlerts returns alerts about jobs.
func jobAlerts() []alert {
	return []alert{
		{
			name: "NIXLJobSlower", severity: "critical", wait: span(windows.Hold),
			comment: "Most agents of a job are far slower than their own past.",
			expr:    jobSlowerShare,
			summary: "The job " + ofTheJob + " is far slower than before (agents: {{ $value }})",
			description: "Check what they share: a change of the transport (UCX falls back to TCP without RDMA devices), the fabric, a new image or driver." +
				seeTransfers,
		},
		{
			name: "NIXLJobStalled", severity: "critical",
			comment: "All agents stopped at once. After an hour, the job counts as idle.",
			expr: `(count ` + byJob + ` (` + agentStalled + `) unless ` + jobActive + ")\n  and on (" + peerLabels + ")\n" +
				`max ` + byJob + ` (max_over_time(` + agentRequests + `[` + span(windows.Recent) + `])) > 0`,
			summary: "All agents of the job " + ofTheJob + " run, but complete no transfers",
			description: "They stopped at once (agents: {{ $value }}). Compare with the running requests of the inference engine: " +
				"without requests, this is normal." + seeTransfers,
		},
		{
			name: "NIXLErrors", severity: "critical", wait: span(windows.Failed),
			comment:     "One alert per job, because all agents that use a failed peer fail. It ends soon after the last error.",
			expr:        `count ` + byJob + ` (` + agentFailing + `)`,
			summary:     "Operations of the job " + ofTheJob + " fail (agents: {{ $value }})",
			description: "More than a tenth of an agent's operations fail, without those that the application canceled." + seeErrors,
		},
	}
}

// presenceAlerts returns alerts about agents, hosts and rings whose metrics are missing.
func presenceAlerts() []alert {
	return []alert{
		{
			name: "NIXLAgentGone", severity: "info", wait: span(windows.Down),
			comment: "A crash can't be distinguished from a normal stop. When a job ends, all of its\n" +
				"agents exit, so this alert is only for jobs that continue with fewer agents than\n" +
				"before. A rollout that replaces each agent doesn't reduce their number.",
			expr: fmt.Sprintf("min_over_time(%s[%s] offset %s) - %[1]s > 0", jobRunning, span(windows.Ago), span(windows.Before)) +
				"\n  and on (" + peerLabels + ")\n" + jobActive + "\n  and on (" + peerLabels + ")\n" +
				"count " + byJob + " (\n  " + exited + "\n    and\n  " + increase("nixl_transfer_requests_total", "15m") + " > 0\n)",
			summary:     "Agents of the job " + ofTheJob + " have exited while others continue (agents: {{ $value }})",
			description: "They moved data until they exited. They crashed or were stopped.",
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
			expr:    agentLoss,
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
			expr:        `max by (` + agentLabels + `) (nixl_telemetry_ring_utilization_ratio) > scalar(` + fillLimit + ")\n  unless\n" + agentLoss,
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

// dashboard returns the path in Grafana of the dashboard that shows what an alert is about.
func (a *alert) dashboard() string {
	escaped := func(label string) string { return `{{ $labels.` + label + ` | urlquery }}` }
	switch {
	case strings.Contains(a.summary, of):
		return `/d/nixl-agent?var-cluster=` + escaped("k8s_cluster_name") + `&var-host=` + escaped("host_name") + `&var-agent=` + escaped("nixl_agent_name")
	case strings.Contains(a.summary, ofTheJob):
		return `/d/nixl-overview?var-job=` + escaped("service_name")
	case strings.Contains(a.summary, "host_name"):
		return `/d/nixl-overview?var-host=` + escaped("host_name")
	default:
		return `/d/nixl-rings`
	}
}

// alerts returns the file of the alerts.
func alerts() []byte {
	var b strings.Builder
	b.WriteString(`# Alerts for NIXL agents, for Prometheus and vmalert. They need rules.yaml, whose first
# group has their thresholds. Generated from internal/dashboards. README.md in this directory lists the requirements of a
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
		fmt.Fprintf(&b, "          dashboard: %s\n", strconv.Quote(a.dashboard()))
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
