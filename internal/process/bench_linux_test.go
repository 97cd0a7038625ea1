// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// BenchmarkScan measures scans of a large host every five seconds. The host has 2,000
// processes, and 50 of them have 20,000 mappings each. The processes are real; the clock
// is simulated.
func BenchmarkScan(b *testing.B) {
	const processes, large, mappings, interval = 2000, 50, 20_000, 5 * time.Second
	cat, err := exec.LookPath("cat")
	if err != nil {
		b.Skip(err)
	}
	for range large {
		child(b, strconv.Itoa(mappings))
	}
	for range processes - large {
		run(b, exec.CommandContext(context.WithoutCancel(b.Context()), cat)) // waits for input
	}
	s, now := New(Config{}), time.Now()
	// The first examinations of all processes take several minutes of simulated time.
	for range 12 * 60 {
		scanTimed(b, s, now)
		now = now.Add(interval)
	}
	b.ResetTimer()
	started, began := cpu(b), now
	for b.Loop() {
		scanTimed(b, s, now)
		now = now.Add(interval)
	}
	used := cpu(b) - started
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(100*used.Seconds()/now.Sub(began).Seconds(), "%-of-a-core")
	b.ReportMetric(float64(memory.HeapInuse+memory.StackInuse)/1e6, "MB")
	b.ReportMetric(float64(len(s.records)), "processes")
}

func scanTimed(b *testing.B, s *Scanner, now time.Time) {
	if found, err := s.Scan(now, false); found == nil { // in a container, and without permissions, it is incomplete
		b.Fatal(err)
	}
}

// cpu returns the user and system time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
