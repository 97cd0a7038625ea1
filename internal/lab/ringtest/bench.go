// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringtest

import (
	"os"
	"slices"
	"testing"
	"time"
)

// MemoryDir returns an empty directory, in memory if possible.
func MemoryDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bench-") //nolint:usetesting // TempDir may be on a disk
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// InTurns runs work and a reference in turns, each several times per turn, and returns the median
// nanoseconds of each. Their ratio depends less on the machine's load than the times do.
func InTurns(b *testing.B, times int, work, reference func()) (worked, referred float64) {
	b.Helper()
	return InTurnsAfter(b, func() {}, times, work, reference)
}

// InTurnsAfter is InTurns that calls before at the beginning of each turn, which isn't measured.
func InTurnsAfter(b *testing.B, before func(), times int, work, reference func()) (worked, referred float64) {
	b.Helper()
	var took [2][]time.Duration
	for b.Loop() {
		for i, run := range []func(){work, reference} {
			before()
			began := time.Now()
			for range times {
				run()
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2]) / float64(times)
	}
	return median(took[0]), median(took[1])
}

// Evictor returns a function that replaces the content of the processor's caches.
func Evictor() func() {
	const size, line = 64 << 20, 64
	memory := make([]byte, size)
	return func() {
		for at := 0; at < size; at += line {
			memory[at]++
		}
	}
}
