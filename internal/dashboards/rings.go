package dashboards

// How the telemetry itself fares.
var (
	fill = Panel{
		Title: "Ring fill", Description: "Highest fill that a drain found. At 100 % the agent loses events; keep it below 50 %.",
		Unit: Share, Max: 1,
		Queries: []Query{{Expr: `max by (` + agentLabels + `) (nixl_telemetry_ring_utilization_ratio{@})`, Legend: byAgent}},
	}
	loss = Panel{
		Title: "Loss", Description: "All that is known of lost events. The lines should lie at 0.", Unit: PerSecond,
		Queries: []Query{
			{Expr: `sum(rate(nixl_telemetry_ring_saturations_total{@}[@]))`, Legend: "drains of a full ring"},
			{Expr: `sum(rate(nixl_telemetry_ring_torn_groups_total{@}[@]))`, Legend: "torn transfers"},
			{Expr: `sum(rate(nixl_telemetry_events_dropped_total{@}[@]))`, Legend: "dropped by agents"},
		},
	}
	lossNow = Panel{
		Title: "Loss", Description: "Drains that found a ring full: its agent has most likely lost events.",
		Kind: Number, Unit: PerSecond, Width: 4, Bad: 1e-9,
		Queries: []Query{{Expr: `sum(rate(nixl_telemetry_ring_saturations_total{@}[@]))`}},
	}
	restarts = lines("Restarts", "Times that an agent started anew on its ring, within 5 minutes.", Count,
		`sum by (`+agentLabels+`) (increase(nixl_telemetry_ring_restarts_total{@}[5m]))`, byAgent)
)

// ringHealth shows whether the numbers of the other dashboards can be trusted.
func ringHealth() Dashboard {
	return Dashboard{
		UID: "nixl-rings", Title: "NIXL / Ring health",
		Description: "Whether events are lost between the agents and the Collector.",
		Variables:   []Variable{hosts, agents(false)},
		Rows: []Row{
			{"Now", []Panel{
				number("Rings", "That are read at present.", Count, `count(nixl_telemetry_ring_capacity{@})`).wide(6),
				number("Highest fill", "Of any ring.", Share, `max(nixl_telemetry_ring_utilization_ratio{@})`).wide(6),
				number("Events", "Read from all rings.", PerSecond, `sum(rate(nixl_events_total{@}[@]))`).wide(6),
				lossNow.wide(6),
			}},
			{"Fill", []Panel{
				fill.wide(12),
				lines("Events", "Read from each ring.", PerSecond,
					`sum by (`+agentLabels+`) (rate(nixl_events_total{@}[@]))`, byAgent).wide(12),
				lines("Slots", "Of each ring: NIXL_TELEMETRY_BUFFER_SIZE of its agent.", Count,
					`max by (`+agentLabels+`) (nixl_telemetry_ring_capacity{@})`, byAgent).wide(12),
				restarts.wide(12),
			}},
			{"Loss", []Panel{
				lines("Drains of a full ring", "The agent has most likely lost events: give it a larger ring.", PerSecond,
					`sum by (`+agentLabels+`) (rate(nixl_telemetry_ring_saturations_total{@}[@]))`, byAgent).wide(12),
				lines("Torn transfers", "Transfers of which some events are missing (layout v4).", PerSecond,
					`sum by (`+agentLabels+`) (rate(nixl_telemetry_ring_torn_groups_total{@}[@]))`, byAgent).wide(12),
				lines("Dropped by agents", "Events that agents say they dropped before the ring.", PerSecond,
					`sum by (`+agentLabels+`) (rate(nixl_telemetry_events_dropped_total{@}[@]))`, byAgent).wide(12),
				lines("Taken by others", "Times that another reader took events, within 5 minutes. They are missing here.", Count,
					`sum by (`+agentLabels+`) (increase(nixl_telemetry_ring_foreign_reads_total{@}[5m]))`, byAgent).wide(12),
			}},
		},
	}
}
