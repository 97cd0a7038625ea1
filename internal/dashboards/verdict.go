// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// wrong returns the row that says which agents are wrong, how, and since when.
func wrong() Row {
	// The rules are evaluated once a minute.
	const since = `1000 * (time() - 60 * count_over_time(` + agentFinding + `{@}[3h:1m]))`
	return Row{Title: "What is wrong", Panels: []Panel{{
		Title: "Agents that are wrong", Kind: Table, Width: 24, NoData: "No agent is wrong",
		Description: "Every agent with a problem. The value is how fast it is compared with its peers or its past, or the share of failed operations or of post time. Needs rules.yaml.",
		Queries: []Query{
			{Expr: agentFinding + `{@}`, Legend: "Value", Unit: Share},
			{Expr: since, Legend: "Since (at most 3 h ago)", Unit: Time},
		},
	}}}
}
