// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkScan measures what scanning a large host costs for an hour: 2,000
// processes, of which 50 have 20,000 mappings each, every five seconds. The
// processes are real, but the time isn't.
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
		idle(b, cat)
	}
	s, now := New(Config{}), time.Now()
	// It takes some minutes until what there was at the start has been examined.
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
	if _, err := s.Scan(now); err != nil && !errors.Is(err, fs.ErrPermission) {
		b.Fatal(err)
	}
}

// idle starts a process that waits.
func idle(b *testing.B, program string) {
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), program)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
}

// cpu returns the time that this process and the kernel on its behalf have used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
