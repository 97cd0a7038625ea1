package dashboards

// How the telemetry itself fares.
var (
	fill = Panel{
		Title: "Ring fill", Description: "Highest fill that a drain found. At 100 % the agent loses events; keep it below 50 %.",
		Unit: Share, Max: 1, Width: 12,
		Queries: []Query{{Expr: fullest, Rank: fullest, Legend: byAgent}},
	}
	loss = Panel{
		Title: "Loss", Description: "All that is known of lost events. The lines should lie at 0.", Unit: PerSecond,
		Queries: []Query{
			{Expr: `sum(rate(nixl_telemetry_ring_saturations_total{@}[@]))`, Legend: "drains of a full ring"},
			{Expr: `sum(rate(nixl_telemetry_ring_torn_groups_total{@}[@]))`, Legend: "torn transfers"},
			{Expr: `sum(rate(nixl_telemetry_events_dropped_total{@}[@]))`, Legend: "dropped by agents"},
			{Expr: `sum(rate(nixl_telemetry_ring_foreign_reads_total{@}[@]))`, Legend: "taken by others"},
		},
	}
	// Torn transfers can be known of some layouts only.
	lossNow = number("Loss", "All that is known of lost events, together.", PerSecond,
		`sum(rate(nixl_telemetry_ring_saturations_total{@}[@])) + sum(rate(nixl_telemetry_events_dropped_total{@}[@])) + `+
			`sum(rate(nixl_telemetry_ring_foreign_reads_total{@}[@])) + (sum(rate(nixl_telemetry_ring_torn_groups_total{@}[@])) or vector(0))`).bad(1e-9)
	restarts = ranked("Restarts", "Times that an agent restarted on its ring, within 5 minutes.", Count,
		ofAgents+`(increase(nixl_telemetry_ring_restarts_total{@}[5m]))`, byAgent)
)

// fullest is the peak since the point before, which would be missed otherwise.
const fullest = `max by (` + agentLabels + `) (max_over_time(nixl_telemetry_ring_utilization_ratio{@}[@]))`

// ringHealth shows whether the numbers of the other dashboards can be trusted.
func ringHealth() Dashboard {
	return Dashboard{
		UID: "nixl-rings", Title: "NIXL / Ring health",
		Description: "Whether events are lost between the agents and the Collector.",
		Refresh:     "30s",
		Variables:   []Variable{hosts, agents, shown("Agents")},
		Rows: []Row{
			{"Now", []Panel{
				number("Rings", "That are read at present.", Count, `count(nixl_telemetry_ring_capacity{@})`).wide(6),
				number("Highest fill", "Of any ring.", Share, `max(nixl_telemetry_ring_utilization_ratio{@})`).wide(6),
				number("Events", "Read from all rings.", Events, `sum(rate(nixl_events_total{@}[@]))`).wide(6),
				lossNow.wide(6),
			}},
			{"All rings", []Panel{loss.wide(24)}},
			{"Rings with the highest loss", []Panel{
				ranked("Drains of a full ring", "The agent has most likely lost events: give it a larger ring.", PerSecond,
					ofAgents+`(rate(nixl_telemetry_ring_saturations_total{@}[@]))`, byAgent),
				ranked("Torn transfers", "Transfers of which some events are missing (layout v4).", PerSecond,
					ofAgents+`(rate(nixl_telemetry_ring_torn_groups_total{@}[@]))`, byAgent),
				ranked("Dropped by agents", "Events that agents say they dropped before the ring.", Events,
					ofAgents+`(rate(nixl_telemetry_events_dropped_total{@}[@]))`, byAgent),
				ranked("Taken by others", "Times that another reader took events, within 5 minutes. They are missing here.", Count,
					ofAgents+`(increase(nixl_telemetry_ring_foreign_reads_total{@}[5m]))`, byAgent),
			}},
			{"Rings with the highest values", []Panel{
				fill,
				ranked("Events", "Read from each ring.", Events, ofAgents+`(rate(nixl_events_total{@}[@]))`, byAgent),
				ranked("Slots", "Of each ring: NIXL_TELEMETRY_BUFFER_SIZE of its agent.", Count,
					`max by (`+agentLabels+`) (now(nixl_telemetry_ring_capacity{@}))`, byAgent),
				restarts,
			}},
		},
	}
}
