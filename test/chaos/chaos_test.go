// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

func TestMain(m *testing.M) {
	agent.Main() // doesn't return in an agent's process
	built.Main(m, "chaos")
}

// Everything happens at the same time and at random, for as long as CHAOS_DURATION says: Collectors
// are killed and suspended, their backend fails, agents are killed and restart, their files are
// truncated, removed and replaced, and another program writes invalid files.
//
// The totals of agents that only write are exact. Those of agents that restart may lack only events
// that were uncommitted in the ring when the agent restarted or its file was removed.
func TestTotalsAreExactDespiteFailures(t *testing.T) {
	t.Parallel()
	long, err := time.ParseDuration(setting("CHAOS_DURATION", "10s"))
	must.OK(t, err)
	seed, err := strconv.ParseUint(setting("CHAOS_SEED", fmt.Sprint(rand.Uint64N(1<<32))), 10, 64)
	must.OK(t, err)
	t.Logf("CHAOS_SEED=%d", seed)
	rings := t.TempDir()
	c := newCollectors(t, rand.New(rand.NewPCG(seed, 0)), rings)
	simulator := exec.CommandContext(t.Context(), built.Nixlring,
		"simulate", rings, "--no-consumer", "--output", "json", "--layout", "mixed", "--agents", "5", "--name", "writer",
		"--error-rate", "0.02", "--seed", fmt.Sprint(seed+1), "--rate", "500")
	simulator.Env = append(os.Environ(), process.EnvBufferSize+"=8192", process.EnvRunInterval+"=20")
	writers := proc.Start(t, simulator)
	var restarted []*restarter
	for i := range 6 {
		restarted = append(restarted, newRestarter(rings, t.TempDir(), seed, i))
	}
	over, ended := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	var others sync.WaitGroup
	defer func() {
		end()
		others.Wait()
	}()
	others.Go(func() { writeInvalidFiles(t, rand.New(rand.NewPCG(seed, 2)), rings, over) })
	others.Go(func() {
		defer close(ended)
		restartAtRandom(t, rand.New(rand.NewPCG(seed, 1)), restarted, over)
	})

	for minute, begun := 1, time.Now(); time.Since(begun) < long && !t.Failed(); {
		c.round(t)
		if time.Since(begun) >= time.Duration(minute)*time.Minute {
			t.Logf("minute %d: %d Collectors were killed", minute, c.kills)
			minute++
		}
	}
	end()
	writers.Stop(t, syscall.SIGTERM)
	var report simulate.Report
	must.OK(t, json.Unmarshal([]byte(writers.Stdout.Text()), &report))
	// The last Collector, which isn't killed, reads the last events.
	c.last(t, func() string {
		select {
		case <-ended:
			return undrained(t, rings)
		default:
			return "agents are still running"
		}
	})

	got := c.backend.Totals(t) // fails the test if points contradict each other
	want, arrived := make(otlpfile.Totals), make(otlpfile.Totals)
	for path, series := range otlpfile.WantReport(t, report) {
		want[path], arrived[path] = exact(series), exact(got[path])
	}
	if len(want) != 5 {
		t.Errorf("%d agents only write, want 5", len(want))
	}
	if d := otlpfile.Diff(want, arrived); d != "" {
		t.Errorf("agents that only write (-written +exported):\n%s", d)
	}
	for _, r := range restarted {
		r.check(t, got[r.path], c.uncertain[r.path])
	}
	t.Logf("%d Collectors were killed, %d events of agents that only write", c.kills, report.Sum.Written)
	if t.Failed() {
		t.Log(strings.Join(c.complaints, "\n"))
	}
}

// exact returns the series that don't depend on when a Collector reads a ring, without minimum and
// maximum, which are those of one Collector.
func exact(all otlpfile.Series) otlpfile.Series {
	series := make(otlpfile.Series)
	for name, v := range all {
		timed := strings.Contains(name, ".last") || strings.Contains(name, "throughput") || strings.Contains(name, ".ring.") || name == "nixl.memory.usage"
		if !timed || strings.HasSuffix(name, ".restarts") || strings.HasSuffix(name, ".foreign_reads") {
			v.Min, v.Max = 0, 0
			series[name] = v
		}
	}
	return series
}

func setting(variable, byDefault string) string {
	if s := os.Getenv(variable); s != "" {
		return s
	}
	return byDefault
}

// undrained returns a message if a ring still holds events.
func undrained(t *testing.T, rings string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rings, "*"))
	must.OK(t, err)
	for _, path := range paths {
		if h := ringtest.ReadHeader(t, path); !h.Drained() {
			return path + " holds events"
		}
	}
	return ""
}

// collectors are Collectors that run one after the other with the same rings and the same storage.
type collectors struct {
	rng     *rand.Rand
	setup   otelcol.Setup
	backend *otlpfile.Sink
	state   string // directory of the storage

	kills      int
	complaints []string        // warnings and errors of all Collectors
	uncertain  map[string]bool // rings that were committed before their totals were stored, by path
}

// newCollectors prepares Collectors that drain and save as often as possible, so that kills are likely
// to interrupt them.
func newCollectors(t *testing.T, rng *rand.Rand, rings string) *collectors {
	t.Helper()
	c := &collectors{rng: rng, backend: otlpfile.NewSink(t), state: t.TempDir(), uncertain: make(map[string]bool)}
	c.setup = otelcol.Setup{Overlays: []string{otelcol.Every(100 * time.Millisecond), fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  nixl_shm: {directories: [%q], storage: file_storage}
exporters:
  otlp_http: {endpoint: %q, sending_queue: {num_consumers: 1}, retry_on_failure: {initial_interval: 50ms, max_interval: 300ms}}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}
`, c.state, rings, c.backend.URL())}}
	return c
}

// round starts a Collector and kills it: while it starts, some time later, or while it writes to its
// storage. Sometimes it is suspended before, as on a busy machine, or its backend fails.
func (c *collectors) round(t *testing.T) {
	t.Helper()
	c.backend.SetDown(c.rng.IntN(4) == 0)
	running := c.setup.Launch(t)
	if c.rng.IntN(5) == 0 {
		pass(t, upTo(c.rng, 800*time.Millisecond))
	} else {
		running.WaitFor(t, "Everything is ready")
		pass(t, upTo(c.rng, time.Second))
		if c.rng.IntN(2) == 0 {
			c.awaitWrites(t)
		}
	}
	if c.rng.IntN(5) == 0 {
		running.Signal(t, syscall.SIGSTOP)
		pass(t, upTo(c.rng, time.Second))
		running.Signal(t, syscall.SIGCONT)
		pass(t, upTo(c.rng, 300*time.Millisecond))
	}
	running.Kill(t)
	c.kills++
	c.note(running)
}

// last runs a Collector until missing returns "", and stops it normally, so that it exports its last
// totals.
func (c *collectors) last(t *testing.T, missing func() string) {
	t.Helper()
	c.backend.SetDown(false)
	running := c.setup.Start(t)
	c.backend.AwaitRequests(t, 2)
	must.Eventually(t, missing)
	running.Stop(t, syscall.SIGTERM)
	c.note(running)
}

// note records the warnings and errors of a Collector that has ended.
func (c *collectors) note(running *otelcol.Collector) {
	for _, e := range running.Complaints() {
		c.complaints = append(c.complaints, e.Line)
		if strings.Contains(e.Message, "committed without a checkpoint") {
			c.uncertain[e.Path] = true
		}
	}
}

// awaitWrites waits for a few writes to the storage, for at most a second. A save writes twice: the
// data and the metadata page.
func (c *collectors) awaitWrites(t *testing.T) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	must.OK(t, err)
	defer w.Close()
	must.OK(t, w.Add(c.state))
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for range 1 + c.rng.IntN(4) {
		select {
		case <-w.Events:
		case err := <-w.Errors:
			t.Fatal(err)
		case <-timer.C:
			return
		}
	}
}

// pass waits for a time. It is used to choose random times of failures.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// upTo returns a random duration below most.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// pick returns a random value.
func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
