// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// agents returns the rows for the calls of Go agents.
func agents() (list []row) {
	for _, call := range []struct{ what, bench string }{
		{"Agent.Transfer", "Transfer"},
		{"Agent.Transfer after With", "TransferWithAttributes"},
		{"Agent.Transfer to a ring", "TransferToARing"},
	} {
		for _, n := range []int{1, 2} {
			list = append(list, row{
				what:    fmt.Sprintf("bridge: %s, goroutines: %d", call.what, n),
				against: "one Float64Histogram.Record",
				bench:   fmt.Sprintf("AgentRatios/%s/goroutines=%d", call.bench, n), unit: "x-record",
				form: times, goal: 1, slack: 3,
				beside: []beside{{"", "ns", "%.0f ns"}, {"", "SDK-ns", "SDK %.0f"}},
			})
		}
	}
	return list
}
