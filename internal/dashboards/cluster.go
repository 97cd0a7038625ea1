package dashboards

// cluster shows hosts, of recorded sums only: it costs the same whatever
// number of agents a host has, and little with very many hosts.
func cluster() Dashboard {
	const (
		sentBy     = hostBytes + `{@,nixl_transfer_direction="transmit"}`
		receivedBy = hostBytes + `{@,nixl_transfer_direction="receive"}`
	)
	return Dashboard{
		UID: "nixl-cluster", Title: "NIXL / Cluster",
		Description: "All hosts, from the recording rules in rules.yaml: what their NIXL agents move, how fast, and what fails.",
		Refresh:     "1m",
		Variables: []Variable{
			{Name: "host", Label: "Host", Key: "host_name", Metric: hostAgents},
			shown("Hosts"),
		},
		Rows: []Row{
			{"Now", []Panel{
				number("Hosts", "That report at present.", Count, `count(`+hostAgents+`{@})`).wide(3),
				number("Agents", "That report at present.", Count, `sum(`+hostAgents+`{@})`).wide(3),
				number("Sent", "Bytes of completed writes.", BytesPerSecond, `sum(`+sentBy+`)`).wide(3),
				number("Received", "Bytes of completed reads.", BytesPerSecond, `sum(`+receivedBy+`)`).wide(3),
				number("Transfers", "Completed transfers.", Requests, `sum(`+hostRequests+`{@})`).wide(3),
				number("Errors", "Operations that failed.", Operations, `sum(`+hostErrors+`{@})`).wide(3),
				number("Highest fill", "Of any ring.", Share, `max(`+hostFill+`{@})`).wide(3),
				number("Loss", "All that is known of lost events.", PerSecond, `sum(`+hostLoss+`{@})`).wide(3).bad(1e-9),
			}},
			{"All hosts", []Panel{
				lines("Throughput", "Bytes of completed transfers.", BytesPerSecond,
					`sum by (nixl_transfer_direction) (`+hostBytes+`{@})`, byDirection),
				lines("Transfers", "Completed transfers.", Requests,
					`sum by (nixl_transfer_direction) (`+hostRequests+`{@})`, byDirection),
				clusterTimes(),
				lines("Agents", "That report.", Count, `sum(`+hostAgents+`{@})`, "agents"),
				lines("Errors by type", "Operations that failed, by NIXL's status. No line is no error.", Operations,
					`sum by (error_type) (`+hostErrors+`{@}) > 0`, byError),
				lines("Loss", "All that is known of lost events. The lines should lie at 0.", PerSecond,
					`sum by (kind) (`+hostLoss+`{@})`, "{{kind}}"),
			}},
			{"Hosts with the highest values", []Panel{
				perHost("Sent", "Bytes of completed writes.", BytesPerSecond, sentBy),
				perHost("Received", "Bytes of completed reads.", BytesPerSecond, receivedBy),
				ranked("Transfer time, 99th percentile", "From the start of a transfer until the application saw it complete.", Milliseconds,
					`histogram_quantile(0.99, sum by (le, host_name) (now(`+hostTimes+`{@})))`, byHost),
				perHost("Errors", "Operations that failed.", Operations, hostErrors+`{@}`),
				perHost("Registered memory", "Memory registered with the host's agents at present.", Memory, hostMemory+`{@}`),
				perHost("Loss", "All that is known of lost events.", PerSecond, hostLoss+`{@}`),
			}},
			{"Busiest hosts", []Panel{hostTable()}},
		},
	}
}

func perHost(title, description string, unit Unit, series string) Panel {
	return ranked(title, description, unit, `sum by (host_name) (now(`+series+`))`, byHost)
}

func clusterTimes() Panel {
	p := times
	p.Queries = nil
	for _, q := range levels {
		p.Queries = append(p.Queries, Query{
			Expr: `histogram_quantile(` + q.is + `, sum by (le) (` + hostTimes + `{@}))`, Legend: q.legend,
		})
	}
	return p
}

// hostTable is a line for each of the hosts that move most.
func hostTable() Panel {
	column := func(title string, unit Unit, expr string) Query {
		return Query{Expr: expr, Legend: title, Unit: unit, Rank: `sum by (host_name) (now(` + hostBytes + `{@})) or 0 * ` + hostAgents + `{@}`}
	}
	sum := func(series string) string { return `sum by (host_name) (` + series + `)` }
	return Panel{
		Title: "Busiest hosts", Description: "Those that move most. The name of one leads to its agents.", Kind: Table, Width: 24,
		Queries: []Query{
			column("Agents", Count, sum(hostAgents+`{@}`)),
			column("Sent", BytesPerSecond, sum(hostBytes+`{@,nixl_transfer_direction="transmit"}`)),
			column("Received", BytesPerSecond, sum(hostBytes+`{@,nixl_transfer_direction="receive"}`)),
			column("Transfers", Requests, sum(hostRequests+`{@}`)),
			column("p99", Milliseconds, `histogram_quantile(0.99, sum by (le, host_name) (`+hostTimes+`{@}))`),
			column("Errors", Operations, sum(hostErrors+`{@}`)),
			column("Memory", Memory, sum(hostMemory+`{@}`)),
			column("Ring fill", Share, `max by (host_name) (`+hostFill+`{@})`),
			column("Loss", PerSecond, sum(hostLoss+`{@}`)),
		},
	}
}
