// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// ceiling is the most transfers per second that an agent with NIXL's defaults
// can tell of: 1,023 of four events in each run interval of 100 ms. One more
// wouldn't fit the ring.
const ceiling = 10_220

// start starts the built Collector with a configuration of its own.
func start(b *testing.B, rings, endpoint, more string) *proc.Process {
	b.Helper()
	program := os.Getenv("OTELCOL_NIXL")
	if program == "" {
		b.Skip("OTELCOL_NIXL doesn't name a built Collector; `make bench` builds one")
	}
	config := fmt.Sprintf(`
receivers:
  nixl_shm:
    directories: [%q]
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  otlp_http: {endpoint: %q, compression: none}
service:
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
  telemetry: {metrics: {level: none}}
`, rings, endpoint)
	args := []string{}
	for i, text := range []string{config, more} {
		path := filepath.Join(b.TempDir(), fmt.Sprintf("config-%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		args = append(args, "--config="+path)
	}
	cmd := exec.CommandContext(b.Context(), program, args...)
	p := proc.Start(b, cmd)
	p.WaitFor(b, "Everything is ready")
	return p
}

const withStorage = `
extensions: {file_storage: {directory: %q}}
receivers: {nixl_shm: {storage: file_storage}}
service: {extensions: [file_storage]}
`

// inMemory is a directory for rings.
func inMemory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bench-") //nolint:usetesting // memory, not a disk
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in memory only
	return dir
}

// load runs agents at the ceiling. Full is how many events found a ring full so
// far; stop ends the agents and returns what they did.
func load(b *testing.B, dir string, agents int) (full func() uint64, stop func() simulate.Totals) {
	b.Helper()
	fleet, err := simulate.NewFleet(simulate.FleetConfig{
		Dir: dir, Agents: agents, Layouts: []ringbuf.Layout{ringbuf.V4},
		// As agents of NIXL 0.9.0 and later they don't push what they have when
		// they end, which would come right behind another full burst.
		Agent: simulate.Config{Rate: ceiling, Seed: 1, NoFinalFlush: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { err = fleet.Run(ctx) })
	full = func() uint64 { return fleet.Report().Sum.DroppedRing.Events }
	return full, func() simulate.Totals {
		cancel()
		wg.Wait()
		if err != nil {
			b.Fatal(err)
		}
		return fleet.Report().Sum
	}
}

// side is one of the Collectors that are compared.
type side struct {
	*proc.Process

	sink *sink
	used time.Duration

	// Its agents; nil where it has none.
	full  func() uint64
	stop  func() simulate.Totals
	early uint64 // events that found a ring full in the first burst, which holds registrations too
}

// The whole Collector, at the intervals that it has by itself, with 64 agents
// that write as much as agents can: beside one with no ring, and one that has
// as many agents and storage too, all at the same time. BENCH_SECONDS is how
// long; BENCH_AGENTS how many.
func BenchmarkCollector(b *testing.B) {
	long := time.Duration(number(b, "BENCH_SECONDS", 60)) * time.Second
	agents := number(b, "BENCH_AGENTS", 64)
	for b.Loop() {
		idle, plain, stored := newSide(b, "", 0), newSide(b, "", agents), newSide(b, fmt.Sprintf(withStorage, b.TempDir()), agents)
		sides := []*side{idle, plain, stored}
		const warm = 5 * time.Second // start, and the first steps of the rings
		stalled := stalls()
		pass(b, warm)
		for _, s := range sides {
			s.used = -s.CPU(b)
			if s.full != nil {
				s.early = s.full()
			}
		}
		pass(b, long)
		for _, s := range sides {
			s.used += s.CPU(b)
		}
		worst := stalled()
		lost, written := plain.end(b)
		lostStored, _ := stored.end(b)
		_, points, bytes := plain.sink.total()
		_, peak := plain.Memory(b)
		_, peakIdle := idle.Memory(b)
		core := func(s *side) float64 { return 100 * s.used.Seconds() / long.Seconds() }
		b.ReportMetric(core(plain)-core(idle), "%-cpu-more")
		b.ReportMetric(core(idle), "%-cpu-idle")
		b.ReportMetric(core(plain), "%-cpu")
		b.ReportMetric(core(stored), "%-cpu-storage")
		b.ReportMetric(core(stored)/core(plain), "x-storage")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(lostStored), "lost-storage")
		b.ReportMetric(float64(worst)/float64(time.Millisecond), "ms-stall")
		b.ReportMetric(float64(written)/1e6, "M-events")
		b.ReportMetric(float64(written)/1e6/(warm+long).Seconds(), "M-events/s")
		b.ReportMetric(float64(peak)/1e6, "MB-peak")
		b.ReportMetric(float64(peakIdle)/1e6, "MB-peak-idle")
		b.ReportMetric(float64(points)/float64(agents), "points/agent")
		b.ReportMetric(float64(bytes)/float64(max(points, 1)), "bytes/point")
		b.ReportMetric(0, "ns/op")
	}
}

func newSide(b *testing.B, more string, agents int) *side {
	b.Helper()
	dir := inMemory(b)
	s := &side{sink: newSink(b, nil)}
	s.Process = start(b, dir, s.sink.URL, more)
	if agents > 0 {
		s.full, s.stop = load(b, dir, agents)
	}
	return s
}

// end stops the agents, waits until the backend has what they wrote, and says
// how many events are missing there, of how many.
func (s *side) end(b *testing.B) (lost, written int64) {
	b.Helper()
	totals := s.stop()
	written = int64(totals.Written.Events.Events)
	full := int64(totals.DroppedRing.Events - s.early)
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		got, _, _ := s.sink.total()
		if got == written {
			return full, written
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return written - got + full, written
		}
	}
}

// stalls begins to measure for how long nothing of this process ran that was
// due. What it returns ends that, and tells the worst: a ring that isn't
// drained for a run interval overflows, whoever reads it.
func stalls() (worst func() time.Duration) {
	const due = 5 * time.Millisecond
	done, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		timer := time.NewTimer(due)
		defer timer.Stop()
		var most time.Duration
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-done:
				longest <- most
				return
			case <-timer.C:
			}
			most = max(most, time.Since(last)-due)
			timer.Reset(due)
		}
	}()
	return func() time.Duration {
		close(done)
		return <-longest
	}
}

func pass(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

// number is an environment variable's, or what is to hold without it.
func number(b *testing.B, variable string, without int) int {
	b.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return without
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		b.Fatalf("%s: %v", variable, err)
	}
	return n
}
