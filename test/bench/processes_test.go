// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkTwoProcesses measures the throughput of a C++ producer at full speed and
// a reader in another process. The reader is alternately Go, which tallies, and
// the simple C++ loop. The processes aren't pinned to CPUs: on a busy machine,
// pinned processes would stall together. A short run has fewer events.
func BenchmarkTwoProcesses(b *testing.B) {
	count, turns := 100_000_000, 5
	if testing.Short() {
		count, turns = 10_000_000, 3
	}
	program := compile(b, "loop")
	var ours, theirs []float64
	for b.Loop() {
		for range turns {
			ours = append(ours, rate(count, readBy(b, program, count)))
			theirs = append(theirs, rate(count, readByPlain(b, program, count)))
		}
	}
	b.ReportMetric(median(ours), "M-events/s")
	b.ReportMetric(median(theirs), "plain-M-events/s")
	b.ReportMetric(median(ours)/median(theirs), "x-plain")
	b.ReportMetric(0, "ns/op")
}

func rate(count int, took time.Duration) float64 { return float64(count) / 1e6 / took.Seconds() }

func readBy(b *testing.B, program string, count int) time.Duration {
	path := fullRing(b).Path()
	r := openReader(b, path)
	wait := launch(b, program, "produce", path, strconv.Itoa(count))
	start := time.Now()
	for idle := 0; r.count < count; {
		if r.drain(b) {
			continue
		}
		if idle++; idle%64 == 0 { // like the C++ loop
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	took := time.Since(start)
	wait()
	if r.count != count {
		b.Fatalf("read %d events, want %d", r.count, count)
	}
	return took
}

func readByPlain(b *testing.B, program string, count int) time.Duration {
	path := fullRing(b).Path()
	produced := launch(b, program, "produce", path, strconv.Itoa(count))
	start := time.Now()
	consumed := launch(b, program, "consume", path, strconv.Itoa(count))
	consumed()
	took := time.Since(start)
	produced()
	return took
}
