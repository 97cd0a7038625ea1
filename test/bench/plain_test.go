// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// slots is the default capacity of agents' rings.
const slots = 4096

// compile builds the C++ program of testdata/bench.
func compile(b *testing.B) string {
	b.Helper()
	cxx := cmp.Or(os.Getenv("CXX"), "g++")
	if _, err := exec.LookPath(cxx); err != nil {
		b.Skipf("no C++ compiler: %v", err)
	}
	program := filepath.Join(b.TempDir(), "tally")
	source := filepath.Join(ringtest.Root(b), "testdata", "bench", "tally.cpp")
	cmd := exec.CommandContext(b.Context(), cxx, "-march=native", "-std=c++20", "-O3", "-o", program, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return program
}

// fullRing creates a ring that is full of transfers. Its file is in memory if
// possible, as is recommended for agents.
func fullRing(b *testing.B) *ringbuf.Writer {
	b.Helper()
	w, err := ringbuf.Create(filepath.Join(ringtest.MemoryDir(b), "agent"), ringbuf.V4, slots)
	must.OK(b, err)
	b.Cleanup(func() { _ = w.Close() })
	fill(b, w, transfers(slots-1))
	return w
}

func fill(b *testing.B, w *ringbuf.Writer, events []ringbuf.Event) {
	b.Helper()
	if n, err := w.PushBatch(events); n != len(events) || err != nil {
		b.Fatalf("pushed %d of %d: %v", n, len(events), err)
	}
}

// reader reads and tallies a ring like the Collector.
type reader struct {
	*ringbuf.Reader

	agent *tally.Agent
}

func openReader(b *testing.B, path string) *reader {
	b.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(b, err)
	b.Cleanup(func() { _ = r.Close() })
	shape, err := tally.NewShape(tally.Config{})
	must.OK(b, err)
	return &reader{Reader: r, agent: tally.NewAgent(shape)}
}

func (r *reader) drain(b *testing.B) {
	_, err := r.Read(0, func(batch ringbuf.Batch) { r.agent.Add(batch) })
	if err == nil {
		err = r.Commit()
	}
	must.OK(b, err)
}

// BenchmarkSameWork alternately measures the drain of a full ring and a C++ program that does the same work:
// sums, distributions and complete groups. The time for filling the rings doesn't count.
func BenchmarkSameWork(b *testing.B) {
	plain := startPlain(b, compile(b), fullRing(b).Path())
	const batch = 20
	events := transfers(slots - 1)
	var ours, theirs []float64
	for b.Loop() {
		w := fullRing(b) // another one each time, because a position of 0 would be ambiguous for a second
		r := openReader(b, w.Path())
		r.drain(b)
		theirs = append(theirs, plain(batch))
		var took []float64
		for range batch {
			fill(b, w, events)
			start := time.Now()
			r.drain(b)
			took = append(took, float64(time.Since(start))/float64(len(events)))
		}
		ours = append(ours, median(took))
	}
	b.ReportMetric(median(ours), "ns/event")
	b.ReportMetric(median(theirs), "plain-ns/event")
	b.ReportMetric(median(ours)/median(theirs), "x-plain")
	b.ReportMetric(0, "ns/op")
}

// startPlain starts a C++ program. The returned function makes the program drain
// n full rings and returns the nanoseconds per event.
func startPlain(b *testing.B, program string, args ...string) func(n int) float64 {
	b.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), program, args...) // exits at the end of its input
	in, err := cmd.StdinPipe()
	must.OK(b, err)
	pipe, err := cmd.StdoutPipe()
	must.OK(b, err)
	must.OK(b, cmd.Start())
	b.Cleanup(func() {
		if err := in.Close(); err == nil {
			err = cmd.Wait()
			if err != nil {
				b.Error(err)
			}
		}
	})
	out := bufio.NewReader(pipe)
	return func(n int) (nanoseconds float64) {
		fmt.Fprintln(in, n)
		_, err := fmt.Fscanln(out, &nanoseconds)
		must.OK(b, err)
		return nanoseconds
	}
}

func median(list []float64) float64 { return quantile(list, 0.5) }

func quantile(list []float64, q float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[min(int(q*float64(len(list))), len(list)-1)]
}

// transfers returns at most n events of an agent that transfers KV cache in both
// directions: complete groups of four events, with a few errors and registrations.
// The values vary, so that the CPU can't predict branches.
func transfers(n int) []ringbuf.Event {
	r := rand.New(rand.NewPCG(1, 2))
	events := make([]ringbuf.Event, 0, n)
	for len(events)+group <= n {
		post := uint64(5 + r.ExpFloat64()*20)
		took := post + uint64(50+r.ExpFloat64()*3000)
		direction := ringbuf.Type(r.IntN(2))
		events = append(events,
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, post),
			ringbuf.NewEvent(ringbuf.TypeXferTime, took),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+direction, 1<<r.IntN(26)*(1+r.Uint64N(100))),
			ringbuf.NewEvent(ringbuf.TypeTxRequests+direction, 1))
		switch r.IntN(1000) {
		case 0:
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30))
		case 1:
			events = append(events, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		}
	}
	return events[:min(n, len(events))]
}

// group is the number of events of a transfer.
const group = 4
