package dashboards

import (
	"regexp"
	"strings"
)

// shown is how many series are in a panel that doesn't show all.
func shown(what string) Variable {
	return Variable{Name: "top", Label: what + " shown", Options: []string{"10", "20", "50", "all : 1000000"}}
}

// ranked is a panel of the series that are highest over the whole time that is
// shown. A topk alone chooses anew at each of its points: there would be many
// more lines than it says, all of them in pieces.
func ranked(title, description string, unit Unit, expr, legend string) Panel {
	p := lines(title, description, unit, expr, legend).wide(12)
	p.Queries[0].Rank = expr
	return p
}

var (
	current = regexp.MustCompile(`\bnow\(([^()]*)\)`)
	window  = regexp.MustCompile(`\[[^]]+\]`)
)

// terms are what a program that draws dashboards has for the placeholders.
type terms struct {
	selector string // of the series that the variables choose
	window   string // long enough for a rate
	whole    string // all the time that is shown
	top      string // how many series of those that are ranked
}

// promQL is the query in the terms of a program.
func (q *Query) promQL(t terms, unit Unit) string {
	expr := t.fillIn(current.ReplaceAllString(q.Expr, "$1"))
	if unit.Factor != "" {
		expr += " " + unit.Factor
	}
	if q.Rank == "" {
		return expr
	}
	rank := current.ReplaceAllString(q.Rank, "avg_over_time($1[@])")
	// One value for all points, of which each backend is sure beforehand, and
	// works it out once.
	rank = window.ReplaceAllLiteralString(rank, "["+t.whole+"] @ end()")
	// The comparison leaves out what is not a number, and more: VictoriaMetrics
	// looks at the chosen series only where the right side isn't an aggregation.
	return expr + " and topk(" + t.top + ", " + t.fillIn(rank) + ") >= 0"
}

// fillIn puts the selector and the window into an expression.
func (t terms) fillIn(expr string) string {
	if t.selector == "" {
		expr = strings.NewReplacer("{@}", "", "{@,", "{").Replace(expr)
	}
	return strings.NewReplacer("{@", "{"+t.selector, "[@]", "["+t.window+"]").Replace(expr)
}
