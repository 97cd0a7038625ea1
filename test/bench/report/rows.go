// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// A group is an invocation of `go test -bench`.
type group struct {
	pkg, bench string // directory, from the repository root; pattern
	args       string // instead of -benchtime=200ms -count=5, for benchmarks whose result is already a median
	long       bool   // not in a short run
}

var groups = []group{
	{pkg: "internal/tally", bench: "^BenchmarkAdd$/^(v1|v4)$"},
	{pkg: "test/bench", bench: "^BenchmarkSameWork$"},
	{pkg: "internal/engine/internal/drain", bench: "^Benchmark(Idle|Cold)Round$/^rings=(10|100|1000)$"},
	{pkg: "receiver/nixlshmreceiver", bench: "^BenchmarkCollect$"},
	{pkg: "test/bench", bench: "^Benchmark(Kernel|Transfer|TransferToRing|RecordPacket)$"},
	{pkg: "internal/process", bench: "^BenchmarkScan$", args: "-benchtime=720x", long: true},
	{pkg: "internal/engine", bench: "^BenchmarkDiscovered$", args: "-benchtime=1x", long: true},
	{pkg: "test/bench", bench: "^Benchmark(Age|Collector)$", args: "-benchtime=1x -timeout=20m", long: true},
}

// A row of the table: the median of one value of a benchmark, which must be at most the goal.
type row struct {
	what, against string
	bench, unit   string
	form          string  // of the value and the goal
	goal          float64 // 0: none
	slack         float64 // a short run fails if the value exceeds the goal by this factor; 0: it never fails
	also          []value // shown, but not judged, because they depend on the machine
}

type value struct{ unit, form string }

var rows = []row{
	{
		"drain and tally a full ring of 4,096 slots", "memcpy of the same bytes", "Add/v4", "x-memcpy", "%.2f×", 0, 0,
		[]value{{"ns/event", "%.2f ns/event"}, {"memcpy-ns/event", "memcpy %.2f"}},
	},
	{
		"the same for v1, whose events contain names", "memcpy of the same bytes", "Add/v1", "x-memcpy", "%.2f×", 6, 3,
		[]value{{"ns/event", "%.2f ns/event"}, {"memcpy-ns/event", "memcpy %.2f"}},
	},
	{
		"drain, tally and commit a full ring", "the same work in C++: sums, distributions, whole groups, throughput", "SameWork", "x-plain", "%.2f×", 1.05, 3,
		[]value{{"ns/event", "%.2f ns/event"}, {"plain-ns/event", "C++ %.2f"}},
	},
	{"a round over 100 idle rings, per ring", "", "IdleRound/rings=100", "ns/ring", "%.0f ns", 120, 3, []value{{"x-load", "%.1f× an atomic load"}}},
	{"a round over 1,000 idle rings, per ring", "", "IdleRound/rings=1000", "ns/ring", "%.0f ns", 0, 0, nil},
	{"the same after other work, so that the caches are cold", "", "ColdRound/rings=1000", "ns/ring", "%.0f ns", 200, 3, []value{{"x-load", "%.1f× an atomic load"}}},
	{"memory of an idle ring, one of 1,000", "without its mapping", "IdleRound/rings=1000", "kB/ring", "%.1f kB", 8, 2, nil},
	{
		"collect 64 agents, all metrics", "build the same points with plain pdata", "Collect/agents=64", "x-plain", "%.2f×", 1.3, 3,
		[]value{{"ns/point", "%.0f ns/point"}, {"allocs/agent", "%.1f allocations/agent"}, {"plain-allocs/agent", "plain %.1f"}},
	},
	{"collect 1,024 agents, all metrics", "build the same points with plain pdata", "Collect/agents=1024", "x-plain", "%.2f×", 0, 0, []value{{"ns/point", "%.0f ns/point"}}},
	{"search 2,000 processes for agents every 5 s; 50 of them have 20,000 mappings", "one core", "Scan", "%-of-a-core", "%.2f%%", 0.3, 0, []value{{"MB", "%.0f MB"}}},
	{"1,000 idle agents found through /proc, each in a directory of its own", "one core", "Discovered", "%-processes", "%.1f%%", 3, 0, []value{{"%-tree", "in one directory tree %.1f%%"}}},
	bridge("Kernel.Received", "one atomic addition", "Kernel/Received/2", 1.5),
	bridge("Kernel.Processed", "one Float64Histogram.Record", "Kernel/Processed/2", 1.1),
	{
		"bridge: a message of a kernel with 10 µs of work, counted when received, processed and sent", "the same without telemetry",
		"Kernel/Message/1", "times", "%.3f×", 1.015, 3,
		[]value{{"times-p25", "half of the batches from %.3f×"}, {"times-p75", "to %.3f×"}, {"ns-more", "%.0f ns more"}},
	},
	bridge("Agent.Transfer", "the SDK's records that it makes: two counters, four histograms", "Transfer/2", 1.1),
	{"bridge: Agent.Transfer to a ring, none dropped, two goroutines", "", "TransferToRing/2", "ns", "%.0f ns", 100, 3, []value{{"SDK-ns", "one Float64Histogram.Record %.0f ns"}}},
	{
		"bridge: record a packet of a session in the CSV file and the metrics", "beside one write of a row", "RecordPacket", "ns-more", "%.0f ns", 2500, 3,
		[]value{{"ns", "in all %.0f ns"}, {"write-ns", "one write %.0f ns"}, {"SDK-ns", "one Float64Histogram.Record %.0f ns"}},
	},
	{
		load + ": CPU", "the same Collector without rings", "Collector", "%-cpu-more", "+%.1f%%", 5, 0,
		[]value{{"%-cpu", "%.1f%% of a core"}, {"M-events/s", "%.2f M events/s"}, {"MB-peak", "%.0f MB"}, {"MB-peak-idle", "%.0f MB without rings"}},
	},
	{load + ": events lost", "", "Collector", "lost", "%.0f", 0.5, 0, []value{{"lost-storage", "%.0f with storage"}, {"ms-stall", "longest stall of the machine %.0f ms"}}},
	{"the same with storage: CPU", "one core", "Collector", "%-cpu-storage", "%.1f%%", 8, 0, []value{{"x-storage", "%.2f× without storage"}}},
	{"age of an event at its export, 99th percentile", "beyond the collection interval", "Age", "ms-p99-beyond", "%+.0f ms", 100, 0, []value{{"ms-p50", "median %.0f ms"}}},
}

const load = "Collector, 64 agents of 4,092 events per 100 ms"

// bridge returns the row of a call that two goroutines make at the same time.
func bridge(what, against, bench string, goal float64) row {
	return row{
		"bridge: " + what + ", two goroutines", against, bench, "times", "%.2f×", goal, 3,
		[]value{{"ns", "%.1f ns"}, {"SDK-ns", "SDK %.1f"}, {"client_golang-ns", "client_golang %.1f"}},
	}
}
