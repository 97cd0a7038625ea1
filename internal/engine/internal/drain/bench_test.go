// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package drain

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkIdleRound drains idle rings and, in turns, makes one atomic load from as many
// pages, the minimum for any reader of so many rings. kB/ring is the process's own memory for
// an idle ring, without its mapping.
func BenchmarkIdleRound(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("rings=%d", n), func(b *testing.B) { benchmarkRound(b, n, max(1, 1000/n), func() {}) })
	}
}

// BenchmarkColdRound is BenchmarkIdleRound with cold caches: a Collector does other things between two rounds.
func BenchmarkColdRound(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("rings=%d", n), func(b *testing.B) { benchmarkRound(b, n, 1, ringtest.Evictor()) })
	}
}

func benchmarkRound(b *testing.B, n, times int, pause func()) {
	b.Helper()
	before := resident(b)
	h := newHarness(b)
	shape, err := tally.NewShape(tally.Config{})
	must.OK(b, err)
	h.owner = newOwner(&Config{Shape: shape, RunInterval: 100 * time.Millisecond, StaleAfter: time.Hour}, h, false)
	var opened []Message
	for dir := ringtest.MemoryDir(b); len(opened) < n; {
		path := fmt.Sprintf("%s/agent-%05d", dir, len(opened))
		w, err := ringbuf.Create(path, ringbuf.V4, 4096)
		must.OK(b, err)
		r, err := ringbuf.OpenReader(path, ringbuf.Consume)
		must.OK(b, err)
		b.Cleanup(func() { _, _ = w.Close(), r.Close() })
		opened = append(opened, Offer{Agent: Agent{ID: path, Dir: dir, Path: path}, Reader: r, From: h})
	}
	h.owner.step(h.now, opened) // accesses each page once
	h.calls = nil
	clear(opened)
	grown := resident(b) - before
	pages := make([]uint64, n*pageWords)
	for at := range pages {
		pages[at] = 1 // otherwise the kernel maps a shared page of zeros
	}
	var sum uint64
	took, reference := ringtest.InTurnsAfter(b, pause, times, func() {
		h.now = h.now.Add(h.owner.cfg.longestWait())
		h.owner.step(h.now, nil)
	}, func() {
		for at := 0; at < len(pages); at += pageWords {
			sum += atomic.LoadUint64(&pages[at])
		}
	})
	b.ReportMetric(took/float64(n), "ns/ring")
	b.ReportMetric(reference/float64(n), "load-ns/ring")
	b.ReportMetric(took/reference, "x-load")
	b.ReportMetric(float64(grown)/1e3/float64(n), "kB/ring")
	b.ReportMetric(0, "ns/op")
	if sum == 0 {
		b.Error("no page was loaded")
	}
}

const pageWords = 4096 / 8

// resident returns the anonymous memory of this process, in bytes.
func resident(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	must.OK(b, err)
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	kB, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseInt(kB, 10, 64)
	must.OK(b, err)
	return n * 1024
}
