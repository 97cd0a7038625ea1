// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"testing"
)

const sample = `goos: linux
cpu: AMD EPYC
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.1 ns/event	         3.7 x-memcpy	       0 allocs/op
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.3 ns/event	         3.9 x-memcpy	       0 allocs/op
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.2 ns/event	         9.9 x-memcpy	       0 allocs/op
BenchmarkIdle      	   33828	     2 ns/op
PASS
`

func TestValueIsTheMedianOfAllRuns(t *testing.T) {
	found := parse(sample)
	if v, ok := found.median("Add/v4", "x-memcpy"); !ok || v != 3.9 {
		t.Errorf("median %v, %v", v, ok)
	}
	if v, ok := found.median("Idle", "ns/op"); !ok || v != 2 {
		t.Errorf("median %v, %v", v, ok)
	}
	if _, ok := found.median("Add/v1", "x-memcpy"); ok {
		t.Error("there is a median for a benchmark that didn't run")
	}
}

// A second attempt distinguishes a regression from a busy machine.
func TestRatioThatIsFarOffIsMeasuredAgain(t *testing.T) {
	const format = "BenchmarkAdd/v4-2 10 1 ns/op %s x-memcpy\n"
	for _, c := range []struct {
		name     string
		short    bool
		values   []string
		measured int
		far      bool
	}{
		{"busy once", true, []string{"20", "4"}, 2, false},
		{"regression", true, []string{"20", "20", "20"}, 3, true},
		{"not far off", true, []string{"5"}, 1, false},
		{"full run", false, []string{"20"}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, measured := make(results), 0
			err := steady(options{short: c.short}, found, func() (string, error) {
				measured++
				return fmt.Sprintf(format, c.values[measured-1]), nil
			}, io.Discard)
			if err != nil || measured != c.measured {
				t.Errorf("measured %d times, error %v", measured, err)
			}
			if far := farOff(judge(found)) != nil; far != c.far {
				t.Errorf("far off: %v", far)
			}
		})
	}
}

func TestJudgeComparesTheValueWithGoalAndSlack(t *testing.T) {
	found := parse(sample)
	for _, c := range []struct {
		goal     float64
		most     bool
		slack    float64
		met, far bool
	}{
		{4, true, 1.5, true, false},
		{3.5, true, 1.5, false, false},
		{2, true, 1.5, false, true},
		{2, true, 0, false, false}, // without slack, it never fails
		{3, false, 1.5, true, false},
		{4, false, 1.5, false, false},
		{9, false, 1.5, false, true},
	} {
		r := row{bench: "Add/v4", unit: "x-memcpy", form: "%.1f", goal: c.goal, least: !c.most, slack: c.slack}
		if l, ok := r.judge(found); !ok || l.met != c.met || l.far != c.far || l.value != "3.9" {
			t.Errorf("%+v: %+v, %v", c, l, ok)
		}
	}
}
