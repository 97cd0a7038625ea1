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

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// ceiling is the maximum rate of transfers per second that fits the ring of an
// agent with NIXL's defaults. In each run interval of 100 ms, the ring has space
// for 1,023 transfers of four events.
const ceiling = 10_220

// start starts the built Collector. The configuration more is merged over the
// default one.
func start(b *testing.B, rings, endpoint, more string) *proc.Process {
	b.Helper()
	program := os.Getenv("OTELCOL_NIXL")
	if program == "" {
		b.Skip("OTELCOL_NIXL isn't set to a built Collector; `make bench` builds one")
	}
	config := fmt.Sprintf(`
receivers:
  nixl_shm:
    directories: [%q]
    metrics: {nixl.events: {enabled: true}}
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
		must.OK(b, os.WriteFile(path, []byte(text), 0o600))
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

// load runs agents at the ceiling. Full returns how many events the agents have
// dropped because a ring was full. Stop stops the agents and returns their totals.
func load(b *testing.B, dir string, agents int) (full func() uint64, stop func() simulate.Totals) {
	b.Helper()
	fleet, err := simulate.NewFleet(simulate.FleetConfig{
		Dir: dir, Agents: agents, Layouts: []ringbuf.Layout{ringbuf.V4},
		// Agents of NIXL 0.9.0 and later don't flush when they exit. A flush would
		// overflow the ring because it follows a full burst.
		Agent: simulate.Config{Rate: ceiling, Seed: 1, NoFinalFlush: true},
	})
	must.OK(b, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { err = fleet.Run(ctx) })
	full = func() uint64 { return fleet.Report().Sum.DroppedRing }
	return full, func() simulate.Totals {
		cancel()
		wg.Wait()
		must.OK(b, err)
		return fleet.Report().Sum
	}
}

// side is one of the compared Collectors with its agents.
type side struct {
	*proc.Process

	sink *otlpfile.Sink
	used time.Duration

	// nil without agents
	full  func() uint64
	stop  func() simulate.Totals
	early uint64 // events dropped in the first burst, which also has registrations
}

// BenchmarkCollector measures the built Collector with default intervals and
// BENCH_AGENTS agents that write at the maximum rate, for BENCH_SECONDS. It
// compares it with a Collector without agents and with one that has the same
// number of agents and a storage extension. All three run at the same time.
func BenchmarkCollector(b *testing.B) {
	duration := time.Duration(number(b, "BENCH_SECONDS", 60)) * time.Second
	agents := number(b, "BENCH_AGENTS", 64)
	for b.Loop() {
		idle, plain, stored := newSide(b, "", 0), newSide(b, "", agents), newSide(b, fmt.Sprintf(withStorage, b.TempDir()), agents)
		sides := []*side{idle, plain, stored}
		const warm = 5 * time.Second // startup and discovery
		stalled := stalls()
		sleep(b, warm)
		for _, s := range sides {
			s.used = -s.CPU(b)
			if s.full != nil {
				s.early = s.full()
			}
		}
		sleep(b, duration)
		for _, s := range sides {
			s.used += s.CPU(b)
		}
		worst := stalled()
		lost, written := plain.end(b)
		lostStored, _ := stored.end(b)
		_, peak := plain.Memory(b)
		_, peakIdle := idle.Memory(b)
		core := func(s *side) float64 { return 100 * s.used.Seconds() / duration.Seconds() }
		b.ReportMetric(core(plain)-core(idle), "%-cpu-more")
		b.ReportMetric(core(plain), "%-cpu")
		b.ReportMetric(core(stored), "%-cpu-storage")
		b.ReportMetric(core(stored)/core(plain), "x-storage")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(lostStored), "lost-storage")
		b.ReportMetric(float64(worst)/float64(time.Millisecond), "ms-stall")
		b.ReportMetric(float64(written)/1e6/(warm+duration).Seconds(), "M-events/s")
		b.ReportMetric(float64(peak)/1e6, "MB-peak")
		b.ReportMetric(float64(peakIdle)/1e6, "MB-peak-idle")
		b.ReportMetric(0, "ns/op")
	}
}

func newSide(b *testing.B, more string, agents int) *side {
	b.Helper()
	dir := ringtest.MemoryDir(b)
	s := &side{sink: otlpfile.NewSink(b)}
	s.Process = start(b, dir, s.sink.URL(), more)
	if agents > 0 {
		s.full, s.stop = load(b, dir, agents)
	}
	return s
}

// end stops the agents and waits until the backend has received their events. It
// returns how many events were lost and how many the agents wrote.
func (s *side) end(b *testing.B) (lost, written int64) {
	b.Helper()
	totals := s.stop()
	written = int64(totals.Written)
	full := int64(totals.DroppedRing - s.early)
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		got := eventsIn(s.newest())
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

// newest returns the newest collection that has arrived.
func (s *side) newest() pmetric.Metrics {
	if all := s.sink.Collections(); len(all) > 0 {
		return all[len(all)-1]
	}
	return pmetric.NewMetrics()
}

// eventsIn returns the number of events of all agents in a collection.
func eventsIn(m pmetric.Metrics) (n int64) {
	for _, rm := range m.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() == "nixl.events" {
					for _, p := range metric.Sum().DataPoints().All() {
						n += p.IntValue()
					}
				}
			}
		}
	}
	return n
}

// stalls starts to measure how late this process wakes up. Worst stops it and
// returns the longest delay. If the machine stalls for a run interval, a ring
// overflows with any reader.
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

func sleep(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

// number returns the number in an environment variable, or fallback if it isn't
// set.
func number(b *testing.B, variable string, fallback int) int {
	b.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return fallback
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		b.Fatalf("%s: %v", variable, err)
	}
	return n
}
