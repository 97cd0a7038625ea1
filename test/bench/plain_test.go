// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// slots is the default capacity of agents' rings.
const slots = 4096

// compile builds a program of testdata/bench.
func compile(b *testing.B, name string, flags ...string) string {
	b.Helper()
	cxx := cmp.Or(os.Getenv("CXX"), "g++")
	if _, err := exec.LookPath(cxx); err != nil {
		b.Skipf("no C++ compiler: %v", err)
	}
	program := filepath.Join(b.TempDir(), name)
	source := filepath.Join(ringtest.Root(b), "testdata", "bench", name+".cpp")
	cmd := exec.CommandContext(b.Context(), cxx, append(flags, "-std=c++20", "-O3", "-o", program, source)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return program
}

// fullRing creates a ring that is full of transfers. Its file is in memory if
// possible, as is recommended for agents.
func fullRing(b *testing.B) *ringbuf.Writer {
	b.Helper()
	w, err := ringbuf.Create(filepath.Join(inMemory(b), "agent"), ringbuf.V4, slots)
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

func (r *reader) add(batch ringbuf.Batch) {
	r.agent.Add(batch)
}

func (r *reader) drain(b *testing.B) {
	_, err := r.Read(0, r.add)
	if err == nil {
		err = r.Commit()
	}
	must.OK(b, err)
}

// BenchmarkSameWork alternates with a C++ program that does the same work: sums,
// distributions and complete groups.
func BenchmarkSameWork(b *testing.B) {
	alternate(b, startPlain(b, compile(b, "tally", "-march=native"), fullRing(b).Path()))
}

// alternate measures the drain of a full ring and plain alternately. The time for
// filling the rings doesn't count.
func alternate(b *testing.B, plain func(n int) float64) {
	b.Helper()
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
	return func(n int) float64 {
		fmt.Fprintln(in, n)
		return answer(b, out)
	}
}

func answer(b *testing.B, out *bufio.Reader) float64 {
	text, err := out.ReadString('\n')
	must.OK(b, err)
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	must.OK(b, err)
	return v
}

func median(list []float64) float64 { return quantile(list, 0.5) }

func quantile(list []float64, q float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[min(int(q*float64(len(list))), len(list)-1)]
}
