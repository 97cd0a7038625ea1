// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// row is a line of the table before the measurement.
type row struct {
	what, against string
	bench, unit   string // of the judged value
	over          string // benchmark whose value of the same unit is the divisor, if any
	form          string // format of value and goal
	goal          float64
	least         bool    // the goal is a minimum
	shown         bool    // goal is only the base of slack
	slack         float64 // a short run fails if it misses goal by this factor; 0: it never fails
	beside        []beside
}

// beside is a value that is shown but not judged, because it depends on the
// machine.
type beside struct{ bench, unit, form string }

// line is a measured row.
type line struct {
	what, against, value, goal, beside string
	limit                              string // of a short run
	met, far                           bool
}

// judge compares the measured value of a row with its goal. It is not ok if the
// benchmark didn't run.
func (r row) judge(found results) (l line, ok bool) {
	v, ok := found.median(r.bench, r.unit)
	if !ok {
		return line{}, false
	}
	if r.over != "" {
		under, ok := found.median(r.over, r.unit)
		if !ok || under == 0 {
			return line{}, false
		}
		v /= under
	}
	l = line{what: r.what, against: r.against, value: fmt.Sprintf(r.form, v)}
	if r.least {
		l.goal, l.met = "≥ "+fmt.Sprintf(r.form, r.goal), v >= r.goal
		l.far, l.limit = v*r.slack < r.goal, fmt.Sprintf(r.form, r.goal/max(r.slack, 1))
	} else {
		l.goal, l.met = "≤ "+fmt.Sprintf(r.form, r.goal), v <= r.goal
		l.far, l.limit = v > r.goal*r.slack, fmt.Sprintf(r.form, r.goal*r.slack)
	}
	l.far = l.far && r.slack > 0
	if r.shown {
		l.goal, l.met = "", true
	}
	for _, b := range r.beside {
		name := b.bench
		if name == "" {
			name = r.bench
		}
		if v, ok := found.median(name, b.unit); ok {
			if l.beside != "" {
				l.beside += ", "
			}
			l.beside += fmt.Sprintf(b.form, v)
		}
	}
	return l, true
}

// judge returns the lines of all rows that were measured.
func judge(found results) (lines []line) {
	for _, r := range rows() {
		if l, ok := r.judge(found); ok {
			lines = append(lines, l)
		}
	}
	return lines
}

// verdict returns "met", "missed", or "" without a goal.
func (l line) verdict() string {
	switch {
	case l.goal == "":
		return ""
	case l.met:
		return "met"
	default:
		return "missed"
	}
}
