package dashboards

// oneAgent shows all that an agent tells of itself.
func oneAgent() Dashboard {
	host, agent := hosts, agents
	host.Single, agent.Single, agent.Within = true, true, `host_name="$host"`
	return Dashboard{
		UID: "nixl-agent", Title: "NIXL / One agent",
		Description: "All that one NIXL agent tells of itself.",
		Variables:   []Variable{host, agent},
		Rows: []Row{
			{"Transfers", []Panel{
				throughput.described("Bytes of completed transfers that the agent started."),
				requests.described("Completed transfers that the agent started."),
				quantiles("Transfer size", "Of both directions.", Bytes, "nixl_transfer_size_bytes"),
				times,
				postTimes,
				speeds,
				lines("Part of the time spent posting", "Post time by transfer time. Near 100 % the descriptors cost more than the data.", Share,
					`sum(rate(nixl_transfer_post_duration_seconds_sum{@}[@])) / sum(rate(nixl_transfer_duration_seconds_sum{@}[@]))`, "post time"),
				{
					Title: "Transfer time, distribution", Description: "How many transfers took how long.",
					Kind: Heatmap, Unit: Seconds, Width: 12,
					Queries: []Query{{Expr: `sum by (le) (rate(nixl_transfer_duration_seconds_bucket{@}[@]))`, Legend: "{{le}}"}},
				},
				{
					Title: "Transfer size, distribution", Description: "How many transfers were how large.",
					Kind: Heatmap, Unit: Bytes, Width: 12,
					Queries: []Query{{Expr: `sum by (le) (rate(nixl_transfer_size_bytes_bucket{@}[@]))`, Legend: "{{le}}"}},
				},
			}},
			{"Newest transfer", []Panel{
				lines("Size", "Of the newest transfer at each collection.", Bytes, `nixl_transfer_last_size_bytes{@}`, byDirection),
				lines("Transfer time", "Of the newest transfer at each collection.", Milliseconds,
					`nixl_transfer_last_duration_seconds{@}`, "transfer time"),
				lines("Post time", "Of the newest transfer at each collection.", Microseconds,
					`nixl_transfer_last_post_duration_seconds{@}`, "post time"),
			}},
			{"Memory, errors and events", []Panel{
				memory.alone("registered").described("Memory registered with the agent at present."),
				errorTypes,
				lines("Events", "Events of every kind that were read from the agent's ring.", Events,
					`sum by (nixl_event_name) (rate(nixl_events_total{@}[@]))`, "{{nixl_event_name}}"),
				fill.alone("highest fill"),
				loss,
				restarts.alone("restarts"),
			}},
		},
	}
}

// alone is a panel of what there is one of.
func (p Panel) alone(legend string) Panel {
	q := p.Queries[0]
	q.Rank, q.Legend = "", legend
	p.Queries, p.Width = []Query{q}, 0
	return p
}

func (p Panel) described(description string) Panel {
	p.Description = description
	return p
}
