// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"regexp"
	"strings"
)

// ranked returns a panel of the series with the highest values over the displayed time range. A
// plain topk selects series at each point in time, which results in many interrupted lines.
func ranked(title, description string, unit Unit, expr, legend string) Panel {
	p := lines(title, description, unit, expr, legend).wide(12)
	p.Queries[0].Rank = expr
	return p
}

// lowest returns a panel of the series with the lowest values.
func lowest(title, description string, unit Unit, expr, legend string) Panel {
	p := ranked(title, description, unit, expr, legend)
	p.Queries[0].Lowest = true
	return p
}

var (
	current = regexp.MustCompile(`\bnow\(([^()]*)\)`)
	window  = regexp.MustCompile(`\[[^]]+\]`)
	// recorded matches a recorded series of agents, model the selector of the model.
	recorded = regexp.MustCompile(`\bagent:[\w:]+\{@`)
	model    = regexp.MustCompile(`,gen_ai_request_model=~"[^"]*"`)
)

// promQL returns the query, with its placeholders replaced.
func (q *Query) promQL(selector string) string {
	expr := fillIn(selector, current.ReplaceAllString(q.Expr, "$1"))
	if q.Rank == "" {
		return expr
	}
	rank := current.ReplaceAllString(q.Rank, "avg_over_time($1[@])")
	// One value for all points: backends evaluate it once.
	rank = window.ReplaceAllLiteralString(rank, "[$__range] @ end()")
	choose := "topk("
	if q.Lowest {
		choose = "bottomk("
	}
	// The comparison drops NaN. Without it, VictoriaMetrics also evaluates the
	// left side for all series.
	return expr + " and " + choose + "$top, " + fillIn(selector, rank) + ") >= 0"
}

// fillIn replaces the selector of the variables, and the time range for rates.
func fillIn(selector, expr string) string {
	if selector == "" {
		expr = strings.NewReplacer("{@}", "", "{@,", "{").Replace(expr)
	}
	// Recorded series lack the label of the model, so the selector of the model is left out.
	expr = recorded.ReplaceAllStringFunc(expr, func(series string) string {
		return strings.TrimSuffix(series, "@") + model.ReplaceAllString(selector, "")
	})
	return strings.NewReplacer("{@", "{"+selector, "[@]", "[$__rate_interval]").Replace(expr)
}
