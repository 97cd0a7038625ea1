// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// BenchmarkDiscovered compares 1,000 agents that are discovered through /proc, each in
// its own directory, with the same agents in one configured directory tree. It reports
// percentages of a core after all rings were opened.
func BenchmarkDiscovered(b *testing.B) {
	const agents = 1000
	top := ringtest.MemoryDir(b)
	for i := range agents {
		dir := filepath.Join(top, fmt.Sprint(i))
		must.OK(b, os.Mkdir(dir, 0o700))
		startAgent(b, dir)
	}
	for b.Loop() {
		tree := measure(b, agents, Config{Directories: []string{top}, Include: []string{"*/bench-agent"}})
		found := measure(b, agents, Config{Processes: &discover.Processes{Interval: discover.DefaultInterval}, Include: []string{"bench-agent"}})
		b.ReportMetric(100*tree, "%-tree")
		b.ReportMetric(100*found, "%-processes")
		b.ReportMetric(100*(found-tree), "%-more")
		b.ReportMetric(0, "ns/op")
	}
}

// measure returns the share of a core that a host with this number of agents uses.
func measure(b *testing.B, agents int, cfg Config) float64 {
	b.Helper()
	h, err := New(cfg)
	must.OK(b, err)
	must.OK(b, h.Start(nil))
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for h.State().Open < agents {
		<-pause.C
	}
	for range 3 {
		<-pause.C
	}
	const long = 20
	began := cpu(b)
	for range long {
		<-pause.C
	}
	used := cpu(b) - began
	if err := h.Stop(context.Background()); err != nil {
		b.Error(err)
	}
	return used.Seconds() / long
}

// cpu returns the user and system time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
