package dashboards

// oneAgent shows all that an agent tells of itself.
func oneAgent() Dashboard {
	return Dashboard{
		UID: "nixl-agent", Title: "NIXL / One agent",
		Description: "All that one NIXL agent tells of itself.",
		Variables:   []Variable{hosts, agents(true)},
		Rows: []Row{
			{"Transfers", []Panel{
				lines("Throughput", "Bytes of completed transfers that the agent started.", BytesPerSecond,
					`sum by (network_io_direction) (rate(nixl_transfer_io_bytes_total{@}[@]))`, byDirection),
				lines("Transfers", "Completed transfers that the agent started.", PerSecond,
					`sum by (network_io_direction) (rate(nixl_transfer_requests_total{@}[@]))`, byDirection),
				quantiles("Transfer size", "Of both directions.", Bytes, "nixl_transfer_size_bytes"),
				times.titled("Transfer time"),
				postTimes.titled("Post time"),
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
					`nixl_transfer_last_duration_seconds{@}`, byAgent),
				lines("Post time", "Of the newest transfer at each collection.", Microseconds,
					`nixl_transfer_last_post_duration_seconds{@}`, byAgent),
			}},
			{"Memory, errors and events", []Panel{
				memory,
				errorTypes.described("Operations that failed, by NIXL's status."),
				lines("Events", "Events of every kind that were read from the agent's ring.", PerSecond,
					`sum by (nixl_event_name) (rate(nixl_events_total{@}[@]))`, "{{nixl_event_name}}"),
				fill,
				loss,
				restarts,
			}},
		},
	}
}

func (p Panel) titled(title string) Panel {
	p.Title = title
	return p
}

func (p Panel) described(description string) Panel {
	p.Description = description
	return p
}
