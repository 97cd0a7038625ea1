// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import "strings"

// verdicts are the findings about agents, by their recorded series. All values are shares.
var verdicts = []struct{ title, description, series string }{
	{"Slower than peers", "Agents that are far slower than the agents of the same job with similar sizes.", agentStraggler},
	{"Slower than before", "Agents that are far slower than the median of their last day.", agentSlower},
	{"Stalled", "Agents that run, but complete no transfers anymore.", "0 * " + agentStalled},
	{"Failing", "Agents with more than a tenth of their operations failing now. Canceled operations don't count.", agentFailing},
	{"Bound by posting", "Agents that spend more than half of their transfer time on posting.", agentPosting},
	{"Small behind large", "Agents with small transfers that wait behind large ones.", agentWaiting},
	{"Losing events", "Agents with incomplete telemetry.", "0 * " + agentLoss},
}

// verdict returns the row that says what is wrong, and with which agents.
func verdict() Row {
	row := Row{Title: "Verdict"}
	var all []string
	for _, v := range verdicts {
		row.Panels = append(row.Panels, number(v.title, v.description, Count, `count(`+v.series+`{@}) or vector(0)`).wide(3).bad(1))
		all = append(all, `label_replace(`+v.series+`{@}, "finding", "`+strings.ToLower(v.title)+`", "", "")`)
	}
	row.Panels = append(row.Panels, downNow.wide(3),
		lines("Findings", "The agents with a problem. The value is how fast an agent is compared with its peers or its past, or the share of failed operations or of post time.",
			Share, strings.Join(all, " or "), "{{finding}}: "+byAgent).wide(24).many().ifEmpty("No findings"))
	return row
}
