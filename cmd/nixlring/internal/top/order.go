// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

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

// Keys returns all keys.
func Keys() []Key {
	return []Key{
		ByName, ByOut, ByIn, ByTransfers, ByP50, ByP99, ByPostP50, ByPostP99,
		ByThroughputP10, ByThroughputP50, BySpeed,
		ByErrors, ByMemory, ByFill, ByAge, ByLayout, ByAlive, ByReader, ByProblems,
	}
}

// Descending reports whether the default order of this key starts with the highest value.
func (k Key) Descending() bool {
	switch k {
	case ByName, ByLayout, ByReader, ByThroughputP10, ByThroughputP50, BySpeed:
		return false
	default:
		return true
	}
}

// value returns the value of a numeric key.
func (k Key) value(r *Row) float64 {
	switch k {
	case ByOut:
		return r.Out
	case ByIn:
		return r.In
	case ByTransfers:
		return r.Transfers
	case ByP50:
		return r.P50
	case ByP99:
		return r.P99
	case ByPostP50:
		return r.PostP50
	case ByPostP99:
		return r.PostP99
	case ByThroughputP10:
		return r.ThroughputP10
	case ByThroughputP50:
		return r.ThroughputP50
	case BySpeed:
		return r.Speed
	case ByErrors:
		return r.Errors
	case ByMemory:
		if r.MemoryUnknown {
			return math.NaN()
		}
		return float64(r.Memory)
	case ByFill:
		return r.Fill
	case ByAge:
		return r.Age.Seconds()
	case ByAlive:
		return float64(r.Alive)
	case ByProblems:
		if worst := r.Worst(); worst >= Warn { // information isn't a problem
			return float64(worst)
		}
		return 0
	default:
		return 0
	}
}

// Sort sorts rows by a key in its default order, or in reverse. Rows with the same value are
// sorted by name. Rows without a value are last.
func Sort(rows []*Row, k Key, reverse bool) {
	descending := k.Descending() != reverse
	slices.SortStableFunc(rows, func(a, b *Row) int {
		c := k.compare(a, b, descending)
		if c == 0 {
			c = Natural(a.Name, b.Name)
			if k == ByName && descending {
				c = -c
			}
		}
		return cmp.Or(c, strings.Compare(a.Path, b.Path))
	})
}

func (k Key) compare(a, b *Row, descending bool) int {
	sign := 1
	if descending {
		sign = -1
	}
	switch k {
	case ByName:
		return 0
	case ByLayout:
		return sign * strings.Compare(a.Layout, b.Layout)
	case ByReader:
		return sign * strings.Compare(a.ReaderName(), b.ReaderName())
	}
	x, y := k.value(a), k.value(b)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return cmp.Compare(boolean(math.IsNaN(x)), boolean(math.IsNaN(y)))
	default:
		return sign * cmp.Compare(x, y)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
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
// only rows with a problem of severity [Warn] or higher.
func Filter(rows []Row, text string, problems bool) []*Row {
	text = strings.ToLower(text)
	var kept []*Row
	for i := range rows {
		r := &rows[i]
		if problems && r.Worst() < Warn || !strings.Contains(strings.ToLower(r.Name), text) {
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
