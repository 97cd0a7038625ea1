// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// bridges returns the rows for the calls of Go programs.
func bridges() (list []row) {
	for _, c := range []struct {
		what, bench, against string
		goal                 float64
	}{
		{"Kernel.Received", "Kernel/Received", "one atomic addition", 1.5},
		{"Kernel.Sent", "Kernel/Sent", "one atomic addition", 1.5},
		{"Kernel.Processed", "Kernel/Processed", "one Float64Histogram.Record", 1.1},
		{"Agent.Transfer", "Transfer/Plain", "the SDK's records that it makes: two counters, four histograms", 1.1},
		{"Agent.Transfer after With", "Transfer/With", "the SDK's records that it makes", 1.1},
	} {
		for _, n := range []int{1, 2, 16} {
			list = append(list, row{
				what:    fmt.Sprintf("bridge: %s, goroutines: %d", c.what, n),
				against: c.against,
				bench:   fmt.Sprintf("%s/%d", c.bench, n), unit: "times",
				form: times, goal: c.goal, slack: 3,
				beside: []beside{{"", "ns", "%.1f ns"}, {"", "SDK-ns", "SDK %.1f"}, {"", "client_golang-ns", "client_golang %.1f"}},
			})
		}
	}
	for _, n := range []int{1, 2, 16} {
		slack := 3.
		if n > 2 {
			slack = 0 // each of 16 waits for the others
		}
		list = append(list, row{
			what:    fmt.Sprintf("bridge: Agent.Transfer to a ring, none dropped, goroutines: %d", n),
			against: "absolute time",
			bench:   fmt.Sprintf("TransferToRing/%d", n), unit: "ns",
			form: "%.0f ns", goal: 100, slack: slack, shown: n > 2,
			beside: []beside{{"", "SDK-ns", "one Float64Histogram.Record %.0f ns"}},
		})
	}
	return append(list, row{
		what: "bridge: a call on a disabled kernel", against: "",
		bench: "Disabled", unit: "ns/op", form: "%.1f ns", goal: 2,
	}, row{
		what: "bridge: a message loop with 10 µs of work", against: "the same loop with a disabled kernel",
		bench: "Loop", unit: "times", form: "%.3f×", goal: 1.02,
		beside: []beside{{"", "off-ns", "%.0f ns"}},
	}, row{
		what: "bridge: register one of 10,000 kernels", against: "register one of 1,000",
		bench: "Register", unit: "times", form: times, goal: 2, slack: 3,
		beside: []beside{{"", "ns/kernel", "%.0f ns"}},
	}, row{
		what: "bridge: record a packet of a session in the CSV file and the metrics", against: "absolute time",
		bench: "RecordPacket", unit: "ns", form: "%.0f ns", goal: 2000, slack: 3,
		beside: []beside{{"", "SDK-ns", "one Float64Histogram.Record %.0f ns"}, {"", "write-ns", "one write of a row %.0f ns"}},
	})
}
