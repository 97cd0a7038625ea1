// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestTableHasTheMedianOfAllRunsAndSaysWhatMissedItsGoal(t *testing.T) {
	const sample = `goos: linux
BenchmarkAdd/v1-2  	   33828	     11247 ns/op	         1.1 ns/event	         6.7 x-memcpy
BenchmarkAdd/v1-2  	   33828	     11247 ns/op	         1.3 ns/event	         3.9 x-memcpy
BenchmarkAdd/v1-2  	   33828	     11247 ns/op	         1.2 ns/event	         9.9 x-memcpy
BenchmarkIdleRound/rings=100 	   33828	     2 ns/op	 119 ns/ring
PASS
`
	const want = `| what | against | measured | goal | also in this run |
|---|---|---|---|---|
| the same for v1, whose events contain names | memcpy of the same bytes | 6.70× | ≤ 6.00×, missed | 1.20 ns/event |
| a round over 100 idle rings, per ring |  | 119 ns | ≤ 120 ns |  |
`
	if got := parse(sample).table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A second attempt distinguishes a regression from a busy machine.
func TestValueThatIsFarOffIsMeasuredAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		short  bool
		values string // of x-memcpy, whose limit is 18
		want   string
	}{
		{"busy once", true, "20 4", "2 <nil>"},
		{"regression", true, "20 20 20", "3 the same for v1, whose events contain names: 20.00× is beyond the limit of 18.00×"},
		{"not far off", true, "17", "1 <nil>"},
		{"full run", false, "20", "1 <nil>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, measured := strings.Fields(c.values), 0
			err := steady(c.short, results{}, func() (string, error) {
				measured++
				return fmt.Sprintf("BenchmarkAdd/v1-2 10 1 ns/op %s x-memcpy\n", values[measured-1]), nil
			})
			if got := fmt.Sprint(measured, " ", err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
