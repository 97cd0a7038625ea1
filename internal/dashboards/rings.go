// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// ringHealth returns the dashboard that shows whether telemetry is complete.
func ringHealth() Dashboard {
	return Dashboard{
		UID: "nixl-rings", Title: "NIXL / Rings and Collector",
		Description: "Whether events are lost between the agents and the backend.",
		Variables:   append(agentVariables(), shown("Agents")),
		Rows: []Row{
			{Title: "Now", Panels: []Panel{
				downNow,
				number("Rings refused", "Discovered rings that can't be opened. The Collector's log contains the reasons.", Count,
					`sum(otelcol_receiver_nixl_shm_rings{state="refused"}) or 0 * sum(otelcol_receiver_nixl_shm_rings)`).bad(1),
				number("Unknown events", "Events of types that the Collector doesn't know. Upgrade it: they may be important.", PerSecond,
					`sum(rate(nixl_telemetry_events_unknown_total{@}[@])) or vector(0)`).bad(1e-9),
				lossNow.wide(12),
			}},
			{Title: "Rings", Panels: []Panel{loss.wide(12), fill, lossByAgent, restarts}},
			{Title: "Collector", Panels: collector()},
		},
	}
}

// collector returns panels with the Collector's own metrics, which don't have the labels of
// agents.
func collector() []Panel {
	const (
		labels = "instance, service_instance_id"
		legend = "{{collector}}"
	)
	// Depending on the backend, the series of a Collector have one of these labels or both.
	named := func(expr string) string {
		return `label_replace(label_replace(` + expr + `, "collector", "$1", "service_instance_id", "(.+)"), "collector", "$1", "instance", "(.+)")`
	}
	// The names of counters and histograms depend on how the metrics are exported.
	rate := func(name string) string {
		return named(`sum by (` + labels + `) (rate({__name__=~"` + name + `(_total)?"}[@]))`)
	}
	quantile := func(phi, name string) string {
		return named(`histogram_quantile(` + phi + `, sum by (le, vmrange, ` + labels + `) (rate({__name__=~"` + name + `(_seconds)?_bucket"}[@])))`)
	}
	return []Panel{
		lines("Rings", "Discovered rings by state and, if they are refused, by reason.", Count,
			`sum by (state, reason) (otelcol_receiver_nixl_shm_rings)`, "{{state}} {{reason}}"),
		lines("Drain lag, 99th percentile",
			"Delay of drain rounds. If it is close to the agents' run interval, rings fill up: give the Collector more CPU.", Seconds,
			quantile("0.99", "otelcol_receiver_nixl_shm_drain_lag"), legend),
		lines("Checkpoint failures", "Batches of checkpoints that the storage extension failed to store.", PerSecond,
			rate("otelcol_receiver_nixl_shm_checkpoint_failures"), legend),
		lines("Export queue", "Fill level of each exporter's queue.", Share,
			named(`sum by (`+labels+`, exporter) (otelcol_exporter_queue_size) / sum by (`+labels+`, exporter) (otelcol_exporter_queue_capacity)`),
			"{{exporter}} "+legend).upTo(1),
		{
			Title: "Rejected points", Description: "Data points that the pipeline or the backend rejected. Totals are cumulative, so the next export includes them.",
			Unit: PerSecond,
			Queries: []Query{
				{Expr: rate("otelcol_receiver_refused_metric_points"), Legend: "by the pipeline " + legend},
				// This counter doesn't exist before the first failure.
				{
					Expr:   rate("otelcol_exporter_send_failed_metric_points") + " or 0 * " + rate("otelcol_exporter_sent_metric_points"),
					Legend: "by the backend " + legend,
				},
			},
		},
	}
}
