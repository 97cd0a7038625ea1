// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// rows returns all rows in the order of the table.
func rows() []row {
	var all []row
	all = append(all, drains()...)
	all = append(all, rounds()...)
	all = append(all, collections()...)
	all = append(all, discoveries()...)
	all = append(all, bridges()...)
	return append(all, wholes()...)
}

const times = "%.2f×"

func drains() []row {
	return []row{
		{
			what: "drain and tally a full v4 ring of 4,096 slots", against: "memcpy of the same bytes",
			bench: "Add/v4", unit: "x-memcpy", form: times, goal: 5, slack: 3, shown: true,
			beside: []beside{{"", "ns/event", "%.2f ns/event"}, {"", "memcpy-ns/event", "memcpy %.2f"}},
		},
		{
			what: "the same for v1, whose events contain names", against: "memcpy of the same bytes",
			bench: "Add/v1", unit: "x-memcpy", form: times, goal: 6, slack: 3,
			beside: []beside{{"", "ns/event", "%.2f ns/event"}, {"", "memcpy-ns/event", "memcpy %.2f"}},
		},
		{
			what: "compute the throughput of each transfer, per event", against: "without throughput",
			bench: "Throughput", unit: "ns/event-more", form: "+%.2f ns", shown: true,
			beside: []beside{{"", "x-without", times}},
		},
		{
			what: "check for slow transfers (none found), per event", against: "without a logs pipeline",
			bench: "Watch", unit: "ns/event-more", form: "+%.2f ns", goal: 2,
			beside: []beside{{"", "x-without", times}},
		},
		{
			what: "drain, tally and commit a full v4 ring", against: "a C++ loop that pops events one by one and sums values by type",
			bench: "PlainLoop", unit: "x-plain", form: times, goal: 1, slack: 5, shown: true, // it does less, and the ratio depends on the processor
			beside: []beside{{"", "ns/event", "%.2f ns/event"}, {"", "plain-ns/event", "C++ %.2f"}},
		},
		{
			what: "the same", against: "a C++ program that does the same work: sums, distributions, whole groups, throughput",
			bench: "SameWork", unit: "x-plain", form: times, goal: 1, slack: 3,
			beside: []beside{{"", "ns/event", "%.2f ns/event"}, {"", "plain-ns/event", "C++ %.2f"}},
		},
		{
			what: "producer and reader in two processes, 4,096 slots, events per second", against: "the same C++ loop as the reader",
			bench: "TwoProcesses", unit: "x-plain", form: times, goal: 1, least: true, slack: 5,
			beside: []beside{{"", "M-events/s", "%.0f M/s"}, {"", "plain-M-events/s", "C++ %.0f M/s"}},
		},
	}
}

func rounds() []row {
	list := []row{{
		what: "drain an idle ring, one of 100", against: "one atomic load from the ring's page",
		bench: "IdleRound/rings=100", unit: "x-load", form: times, goal: 40, slack: 3,
		beside: []beside{{"", "ns/ring", "%.1f ns"}, {"", "load-ns/ring", "load %.1f"}},
	}}
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		name := fmt.Sprintf("rings=%d", n)
		list = append(list, row{
			what: fmt.Sprintf("a round over %d idle rings, per ring", n), against: "absolute time",
			bench: "IdleRound/" + name, unit: "ns/ring", form: "%.0f ns", goal: 120, shown: n < 10 || n > 100, // includes the fixed cost of a round, or the headers don't fit the cache
			beside: []beside{
				{"", "x-load", "%.1f× a load"},
				{"BusyRound/" + name, "ns/ring", "%.0f ns with 40 events each"},
				{"BusyRound/" + name, "ns/event", "%.1f ns/event"},
			},
		})
	}
	return append(list, row{
		what: "memory of an idle ring, one of 1,000", against: "without its mapping",
		bench: "IdleRound/rings=1000", unit: "kB/ring", form: "%.1f kB", goal: 8, slack: 2,
	}, row{
		what: "memory of an idle ring, one of 10,000", against: "without its mapping",
		bench: "IdleRound/rings=10000", unit: "kB/ring", form: "%.1f kB", goal: 8,
	})
}

// discoveries returns the rows for the search for processes.
func discoveries() []row {
	return []row{{
		what: "search 2,000 processes for agents every 5 s; 50 of them have 20,000 mappings", against: "one core",
		bench: "Scan", unit: "%-of-a-core", form: "%.2f%%", goal: 0.3,
	}, {
		what: "memory of this search", against: "absolute, including the Go runtime",
		bench: "Scan", unit: "MB", form: "%.0f MB", goal: 20,
	}, {
		what: "1,000 idle agents found through /proc, each in a directory of its own", against: "the same in one directory tree",
		bench: "Discovered", unit: "%-more", form: "+%.1f%% of a core", goal: 5,
		beside: []beside{{"", "%-processes", "%.1f%%"}, {"", "%-tree", "tree %.1f%%"}},
	}}
}

func collections() (list []row) {
	for _, n := range []int{100, 1000} {
		list = append(list, row{
			what: fmt.Sprintf("collect a prometheus_mp store, one of %d that all changed", n), against: "absolute time",
			bench: fmt.Sprintf("Stores/busy/stores=%d", n), unit: "ns/store", form: "%.0f ns", goal: 2000, shown: n > 100, // they don't fit the cache
			beside: []beside{{fmt.Sprintf("Stores/idle/stores=%d", n), "ns/store", "%.0f ns if none changed"}},
		})
	}
	list = append(list, row{
		what: "collect 50 directories with a store and 50 with a ring, 5 ms per transaction of the storage extension", against: "absolute time",
		bench: "SavedStores/stores=50", unit: "ms/collection", form: "%.1f ms", goal: 15,
		beside: []beside{
			{"", "transactions", "%.2f transactions"},
			{"SavedStores/stores=0", "ms/collection", "%.1f ms for the rings alone"},
			{"SavedStores/stores=0", "transactions", "with %.2f transactions"},
		},
	})
	for _, n := range []int{64, 1024} {
		list = append(list, row{
			what: fmt.Sprintf("collect %d agents, all metrics", n), against: "build the same points with plain pdata",
			bench: fmt.Sprintf("Collect/agents=%d", n), unit: "x-plain", form: times, goal: 1.2, slack: 3, shown: n > 64,
			beside: []beside{
				{"", "ns/point", "%.0f ns/point"},
				{"", "points/agent", "%.0f points/agent"},
				{"", "allocs/agent", "%.1f allocations/agent"},
				{"", "plain-allocs/agent", "plain %.1f"},
			},
		})
	}
	return list
}

func wholes() []row {
	const load = "Collector, 64 agents of 4,092 events per 100 ms"
	return []row{
		{
			what: load + ": CPU", against: "the same Collector without rings",
			bench: "Collector", unit: "%-cpu-more", form: "+%.1f%%", goal: 5,
			beside: []beside{{"", "%-cpu", "%.1f%% of a core"}, {"", "%-cpu-idle", "%.1f%% idle"}, {"", "M-events/s", "%.2f M events/s"}},
		},
		{
			what: load + ": events lost", against: "what the agents wrote",
			bench: "Collector", unit: "lost", form: "%.0f", goal: 0,
			beside: []beside{
				{"", "M-events", "of %.1f M"},
				{"", "lost-storage", "%.0f with storage"},
				{"", "ms-stall", "longest stall of the machine %.0f ms"},
			},
		},
		{
			what: load + ": peak memory", against: "",
			bench: "Collector", unit: "MB-peak", form: "%.0f MB", goal: 120,
			beside: []beside{{"", "MB-peak-idle", "%.0f MB without rings"}},
		},
		{
			what: "the same with storage: CPU", against: "one core",
			bench: "Collector", unit: "%-cpu-storage", form: "%.1f%%", goal: 8,
			beside: []beside{{"", "x-storage", "%.2f× without storage"}},
		},
		{
			what: "age of an event at its export, 99th percentile", against: "beyond the collection interval",
			bench: "Age", unit: "ms-p99-beyond", form: "%+.0f ms", goal: 100,
			beside: []beside{{"", "ms-p50", "median %.0f ms"}, {"", "ms-interval", "interval %.0f ms"}},
		},
	}
}
