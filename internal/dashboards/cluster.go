// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// cluster returns the dashboard of all hosts. It uses only recorded sums, so its cost doesn't
// depend on the number of agents.
func cluster() Dashboard {
	return Dashboard{
		UID: "nixl-cluster", Title: "NIXL / Cluster",
		Description: "Throughput, transfer times and errors of all hosts. Needs the recording rules in rules.yaml.",
		Refresh:     "1m",
		Variables: []Variable{
			{Name: "cluster", Label: "Cluster", Key: "k8s_cluster_name", Metric: hostAgents},
			{Name: "host", Label: "Host", Key: "host_name", Metric: hostAgents, Within: `k8s_cluster_name=~"$cluster"`},
			shown("Hosts"),
		},
		Rows: []Row{
			{Title: "All hosts", Panels: []Panel{
				lines("Throughput", "Bytes of completed transfers.", BytesPerSecond,
					`sum by (nixl_transfer_direction) (`+hostBytes+`{@})`, byDirection),
				quantiles(times.Title, times.Description, times.Unit, hostQuantile),
				lines("Errors by type", "Failed operations by NIXL status.", Operations,
					`sum by (error_type) (`+hostErrors+`{@}) > 0`, byError).ifEmpty(noErrors),
			}},
			{Title: "Hosts that stand out", Panels: []Panel{
				ranked("Slowest transfers, 99th percentile", "From the start of a transfer until the application saw it complete.", Seconds,
					hostQuantile("0.99", hostLabels), byHost),
				ranked("Loss by host", "Sum of all signs that events were lost.", PerSecond, `sum by (`+hostLabels+`) (now(`+hostLoss+`{@}))`, byHost),
			}},
			{Title: "Busiest hosts", Panels: []Panel{hostTable()}},
		},
	}
}

// hostQuantile returns a quantile of the recorded rates of a histogram.
func hostQuantile(phi, by string) string {
	return either(
		`histogram_quantile(`+phi+`, sum `+grouped("le, vmrange", by)+`(now(`+hostBuckets+`{@})))`,
		`histogram_quantile(`+phi+`, sum `+grouped(by)+`(now(`+hostTimes+`{@})))`,
	)
}

// hostTable returns a table of the hosts with the highest throughput.
func hostTable() Panel {
	const busiest = `sum by (` + hostLabels + `) (now(` + hostBytes + `{@})) or 0 * ` + hostAgents + `{@}`
	sum := func(series string) string { return `sum by (` + hostLabels + `) (` + series + `)` }
	return busy("Busiest hosts", "The hosts with the highest throughput. A host's name links to its agents.", busiest,
		column("Throughput", BytesPerSecond, `(`+busiest+`)`),
		column("Agents", Count, sum(hostAgents+`{@}`)),
		column("Sent", BytesPerSecond, sum(hostBytes+`{@,nixl_transfer_direction="transmit"}`)),
		column("Received", BytesPerSecond, sum(hostBytes+`{@,nixl_transfer_direction="receive"}`)),
		column("Transfers", Requests, sum(hostRequests+`{@}`)),
		column("p99", Seconds, hostQuantile("0.99", hostLabels)),
		column("Errors", Share, failed(`sum `+grouped(hostLabels)+`(now(`+hostErrors+`{@}))`, `sum `+grouped(hostLabels)+`(now(`+hostRequests+`{@}))`)),
		column("Memory", Memory, sum(hostMemory+`{@}`)),
		column("Ring fill", Share, `max by (`+hostLabels+`) (`+hostFill+`{@})`),
		column("Loss", PerSecond, sum(hostLoss+`{@}`)),
	)
}
