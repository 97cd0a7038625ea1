// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ringVariable makes the test binary an agent with a ring at the variable's value. It writes a
// transfer for each line of its input.
const ringVariable = "BENCH_RING"

// runAgent keeps a ring until standard input ends.
func runAgent(path string) {
	w, err := ringbuf.Create(path, ringbuf.V4, 4096)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	transfer := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, 50),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, _ = w.PushBatch(transfer) // the reader finds that events are missing
		fmt.Println("written")
	}
	_ = w.Close()
}

// BenchmarkDiscovered compares 1,000 agents that are discovered through /proc, each in
// its own directory, with the same agents in one configured directory tree. It reports
// percentages of a core after all rings were opened.
func BenchmarkDiscovered(b *testing.B) {
	const agents = 1000
	top := memory(b)
	for i := range agents {
		launch(b, filepath.Join(top, fmt.Sprint(i)))
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

// memory returns a directory in memory, if possible.
func memory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bench-") //nolint:usetesting // TempDir may be on a disk
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// launch starts an agent with a ring in a new directory.
func launch(b *testing.B, dir string) {
	b.Helper()
	must.OK(b, os.Mkdir(dir, 0o700))
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), ringVariable+"="+filepath.Join(dir, "bench-agent"), "GOMAXPROCS=1",
		"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	must.OK(b, cmd.Start())
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
}

// cpu returns the user and system time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
