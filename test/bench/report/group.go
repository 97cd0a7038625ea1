// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// top is the path of the repository root from the working directory.
const top = "../.."

// group is an invocation of `go test`.
type group struct {
	name    string
	pkg     string // directory, from the repository root
	bench   string // pattern
	time    string // -benchtime; the default is 200ms, or 100ms in a short run
	once    bool   // run it only once because its result is already a median
	long    bool   // skip it in a short run
	timeout string
}

func groups() []group {
	return []group{
		{name: "drain and tally", pkg: "./internal/tally", bench: "^BenchmarkAdd$/^(v1|v4)$"},
		{name: "throughput", pkg: "./internal/tally", bench: "^BenchmarkThroughput$"},
		{name: "logs", pkg: "./internal/tally", bench: "^BenchmarkWatch$"},
		{name: "plain loop", pkg: "./test/bench", bench: "^BenchmarkPlainLoop$"},
		{name: "same work", pkg: "./test/bench", bench: "^BenchmarkSameWork$"},
		{name: "two processes", pkg: "./test/bench", bench: "^BenchmarkTwoProcesses$", time: "1x", once: true},
		{name: "many rings", pkg: "./internal/engine/internal/drain", bench: "^Benchmark(Idle|Busy)Round$/^rings=(1|10|100|1000)$"},
		{name: "very many rings", pkg: "./internal/engine/internal/drain", bench: "^Benchmark(Idle|Busy)Round$/^rings=10000$", once: true, long: true},
		{name: "stores", pkg: "./internal/engine", bench: "^BenchmarkStores$"},
		{name: "saved stores", pkg: "./internal/engine", bench: "^BenchmarkSavedStores$"},
		{name: "collection", pkg: "./receiver/nixlshmreceiver", bench: "^BenchmarkCollect$", time: "1s"},
		{name: "discovery", pkg: "./internal/process", bench: "^BenchmarkScan$", time: "720x", once: true, long: true},
		{name: "discovered", pkg: "./internal/engine", bench: "^BenchmarkDiscovered$", time: "1x", once: true, long: true},
		{name: "bridge", pkg: "./test/bench", bench: "^Benchmark(Kernel|Transfer|TransferToRing|Disabled|Loop|Register|RecordPacket)$"},
		{name: "age", pkg: "./test/bench", bench: "^BenchmarkAge$", time: "1x", once: true, long: true},
		{name: "whole Collector", pkg: "./test/bench", bench: "^BenchmarkCollector$", time: "1x", once: true, long: true, timeout: "20m"},
	}
}

// run runs the benchmarks and returns their output.
func (g group) run(ctx context.Context, o options) (string, error) {
	count, benchtime := cmp.Or(o.count, 5), "200ms"
	if o.short {
		count, benchtime = cmp.Or(o.count, 3), "100ms"
	}
	if g.once {
		count = 1
	}
	args := []string{
		"test", "-run=^$", "-bench=" + g.bench, "-count=" + strconv.Itoa(count),
		"-benchtime=" + cmp.Or(g.time, benchtime), "-timeout=" + cmp.Or(g.timeout, "10m"),
	}
	if o.short {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(top, g.pkg) // may be in another module
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", g.name, err, out.String())
	}
	return out.String(), nil
}
