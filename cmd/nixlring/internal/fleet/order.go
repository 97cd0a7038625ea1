// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Key is a column that rows are sorted by.
type Key string

// The keys.
const (
	ByName          Key = "name"
	ByOut           Key = "out"
	ByIn            Key = "in"
	ByTransfers     Key = "transfers"
	ByP50           Key = "p50"
	ByP99           Key = "p99"
	ByPostP50       Key = "post-p50"
	ByPostP99       Key = "post-p99"
	ByThroughputP10 Key = "throughput-p10"
	ByThroughputP50 Key = "throughput-p50"
	BySpeed         Key = "speed"
	ByErrors        Key = "errors"
	ByMemory        Key = "memory"
	ByFill          Key = "fill"
	ByAge           Key = "age"
	ByLayout        Key = "layout"
	ByAlive         Key = "alive"
	ByReader        Key = "reader"
	ByProblems      Key = "problems"
)

// order is how rows are sorted by a key: by a number or by a text.
type order struct {
	key        Key
	descending bool
	number     func(*Row) float64 // NaN is last
	text       func(*Row) string
}

// orders has all keys, in the order of the columns.
var orders = []order{
	{key: ByName},
	{key: ByOut, descending: true, number: func(r *Row) float64 { return r.Out }},
	{key: ByIn, descending: true, number: func(r *Row) float64 { return r.In }},
	{key: ByTransfers, descending: true, number: func(r *Row) float64 { return r.Completed }},
	{key: ByP50, descending: true, number: func(r *Row) float64 { return r.P50 }},
	{key: ByP99, descending: true, number: func(r *Row) float64 { return r.P99 }},
	{key: ByPostP50, descending: true, number: func(r *Row) float64 { return r.PostP50 }},
	{key: ByPostP99, descending: true, number: func(r *Row) float64 { return r.PostP99 }},
	{key: ByThroughputP10, number: func(r *Row) float64 { return r.ThroughputP10 }},
	{key: ByThroughputP50, number: func(r *Row) float64 { return r.ThroughputP50 }},
	{key: BySpeed, number: func(r *Row) float64 { return r.Speed }},
	{key: ByErrors, descending: true, number: func(r *Row) float64 { return r.Failures }},
	{key: ByMemory, descending: true, number: func(r *Row) float64 {
		if r.Memory == nil {
			return math.NaN()
		}
		return float64(*r.Memory)
	}},
	{key: ByFill, descending: true, number: func(r *Row) float64 { return r.Fill() }},
	{key: ByAge, descending: true, number: func(r *Row) float64 { return r.Age.Seconds() }},
	{key: ByLayout, text: func(r *Row) string { return r.Layout }},
	{key: ByAlive, descending: true, number: func(r *Row) float64 { return float64(r.Up) }},
	{key: ByReader, text: (*Row).Consumer},
	{key: ByProblems, descending: true, number: func(r *Row) float64 {
		if r.Place == 0 {
			return math.Inf(-1)
		}
		return -float64(r.Place)
	}},
}

func (k Key) order() order {
	return orders[max(0, slices.IndexFunc(orders, func(o order) bool { return o.key == k }))]
}

// Keys returns all keys.
func Keys() (keys []Key) {
	for i := range orders {
		keys = append(keys, orders[i].key)
	}
	return keys
}

// Descending reports whether the default order is descending.
func (k Key) Descending() bool { return k.order().descending }

// Sort sorts rows by k and then by name.
func Sort(rows []*Row, k Key, reverse bool) {
	o := k.order()
	sign := 1
	if o.descending != reverse {
		sign = -1
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		var c int
		switch {
		case o.number != nil:
			c = compare(o.number(a), o.number(b), sign)
		case o.text != nil:
			c = sign * strings.Compare(o.text(a), o.text(b))
		default:
			c = sign * Natural(a.Name, b.Name)
		}
		return cmp.Or(c, Natural(a.Name, b.Name), strings.Compare(a.Path, b.Path))
	})
}

// compare compares two numbers. NaN is last in both orders.
func compare(x, y float64, sign int) int {
	switch {
	case math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x):
		return 1
	case math.IsNaN(y):
		return -1
	}
	return sign * cmp.Compare(x, y)
}

// Natural compares names in natural order: agent-2 is before agent-10.
func Natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := digits(a)
		y, restB := digits(b)
		if x != "" && y != "" {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits splits s after its leading digits.
func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// Filter returns the rows whose names contain text, ignoring case. With problems, it returns
// only rows with a problem.
func Filter(rows []Row, text string, problems bool) []*Row {
	text = strings.ToLower(text)
	var kept []*Row
	for i := range rows {
		r := &rows[i]
		if problems && r.Place == 0 || !strings.Contains(strings.ToLower(r.Name), text) {
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
