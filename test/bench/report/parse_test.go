package main

import "testing"

const sample = `goos: linux
cpu: AMD EPYC
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.1 ns/event	         3.7 x-memcpy	       0 allocs/op
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.3 ns/event	         3.9 x-memcpy	       0 allocs/op
BenchmarkAdd/v4-2  	   33828	     11247 ns/op	         1.2 ns/event	         9.9 x-memcpy	       0 allocs/op
BenchmarkIdle      	   33828	     2 ns/op
PASS
`

func TestMedianOfRuns(t *testing.T) {
	found := parse(sample)
	if v, ok := found.median("Add/v4", "x-memcpy"); !ok || v != 3.9 {
		t.Errorf("median %v, %v", v, ok)
	}
	if v, ok := found.median("Idle", "ns/op"); !ok || v != 2 {
		t.Errorf("median %v, %v", v, ok)
	}
	if _, ok := found.median("Add/v1", "x-memcpy"); ok {
		t.Error("a value of a benchmark that didn't run")
	}
}

func TestVerdicts(t *testing.T) {
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
		{2, true, 0, false, false}, // of no slack: never fails
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
