// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// simulating runs nixlring simulate until the test ends, and returns the directory of the rings.
func simulating(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	errs, done := make(lines, 10), make(chan int)
	go func() {
		w := world{out: io.Discard, err: errs, now: time.Now, env: quick}
		done <- run(ctx, w, append([]string{"simulate", dir, "--seed", "1", "--rate", "500"}, args...))
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
	if started := errs.next(t); !strings.HasSuffix(started, "; press Ctrl-C to stop\n") {
		t.Fatal(started)
	}
	return dir
}

// simulated runs the simulator with a fake clock and returns its report.
func simulated(t *testing.T, env map[string]string, args ...string) (r result, report simulate.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r = nixlring(t.Context(), env, append([]string{"simulate", "--no-consumer", "--output", "json"}, args...)...)
	})
	if r.code != exitOK {
		t.Fatalf("%v: %+v", args, r)
	}
	must.OK(t, json.Unmarshal([]byte(r.out), &report))
	return r, report
}

// inRing returns the sums of the values of events in a ring, by name.
func inRing(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	sums := map[string]uint64{}
	_, err = r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			sums[e.EventName()] += e.Value
		}
	})
	must.OK(t, err)
	return sums
}

func TestSimulateReportsWhatIsInTheRings(t *testing.T) {
	dir := t.TempDir()
	r, report := simulated(t, nil, dir, "--agents", "5", "--layout", "mixed", "--duration", "5s", "--error-rate", "0.05", "--seed", "7")
	if report.Seed != 7 || len(report.Agents) != 5 || report.Sum.Operations != 2500 {
		t.Errorf("seed %d, %d agents, %d operations", report.Seed, len(report.Agents), report.Sum.Operations)
	}
	for path, totals := range report.Agents {
		want := oracle.New()
		r, err := ringbuf.OpenReader(path, ringbuf.Observe)
		must.OK(t, err)
		want.Opened()
		_, err = r.Read(0, func(b ringbuf.Batch) {
			for i := range b.Len() {
				want.Add(b.Layout(), b.Event(i))
			}
		})
		must.OK(t, errors.Join(err, r.Close()))
		if diff := cmp.Diff(want.Points(), totals.Points); diff != "" {
			t.Errorf("%s: ring (-) and report (+) differ:\n%s", path, diff)
		}
	}
	if !strings.Contains(r.err, "5 agents in "+dir+", 100 transfers/s each, layout mixed, seed 7; ") {
		t.Errorf("progress: %s", r.err)
	}
}

func TestSimulateWithTheSameSeedHasTheSameTraffic(t *testing.T) {
	sum := func(args ...string) simulate.Totals {
		dir := t.TempDir()
		_, report := simulated(t, nil, append([]string{dir, "--transfers", "200"}, args...)...)
		return report.Agents[filepath.Join(dir, "sim-0")]
	}
	first := sum("--seed", "3")
	if diff := cmp.Diff(first, sum("--seed", "3")); diff != "" {
		t.Error(diff)
	}
	if first.Operations != 200 {
		t.Errorf("%d transfers", first.Operations)
	}
	if cmp.Equal(first, sum()) {
		t.Error("another seed has the same traffic")
	}
}

func TestSimulateDefaultsToTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{
		"NIXL_TELEMETRY_DIR": dir + "/none", "NIXL_TELEMETRY_BUFFER_SIZE": "512", "NIXL_TELEMETRY_RUN_INTERVAL": "500",
	}
	_, report := simulated(t, env, dir, "--duration", "5s", "--rate", "10")
	totals, ok := report.Agents[filepath.Join(dir, "sim-0")]
	if !ok || totals.Capacity != 512 || totals.Flushes != 11 {
		t.Errorf("rings %v, capacity %d, %d flushes", report.Agents, totals.Capacity, totals.Flushes)
	}
	_, report = simulated(t, env, dir, "--duration", "5s", "--rate", "10", "--capacity", "1024", "--run-interval", "100ms")
	if totals := report.Sum; totals.Capacity != 1024 || totals.Flushes != 51 {
		t.Errorf("flags: capacity %d, %d flushes", totals.Capacity, totals.Flushes)
	}
	for name, value := range map[string]string{"NIXL_TELEMETRY_BUFFER_SIZE": "12", "NIXL_TELEMETRY_RUN_INTERVAL": "soon"} {
		r := nixlring(t.Context(), map[string]string{name: value}, "simulate", dir)
		if r.code != exitError || !strings.Contains(r.err, name+"="+value) {
			t.Errorf("%s=%s: %+v", name, value, r)
		}
	}
}

func TestSimulateRunsUntilInterrupted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // a signal cancels a context
		defer cancel()
		r := nixlring(ctx, nil, "simulate", dir, "-n", "2", "--restart-every", "9s", "--seed", "7", "--rate", "0", "--no-consumer")
		want := result{
			out: "0 transfers (0 failed), 30 events written (12 unread), 0 dropped in staging, 0 dropped because a ring was full\n" +
				"0 transfers/s of each agent over 25s, seed 7\n",
			err: "2 agents in " + dir + ", 0 transfers/s each, layout v4, seed 7; press Ctrl-C to stop\n",
		}
		if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSimulateWithoutFinalFlushLosesTheLastInterval(t *testing.T) {
	dir := t.TempDir()
	_, report := simulated(t, nil, dir, "--duration", "1s", "--no-final-flush", "--name", "decode")
	path := filepath.Join(dir, "decode-0")
	if inRing(t, path)["agent_xfer_time"] == 0 {
		t.Error("no ring, or no transfer in it")
	}
	if report.Sum.Discarded == 0 {
		t.Error("the last interval was flushed")
	}
}

func TestSimulateFlagsOverrideTheScenario(t *testing.T) {
	run := func(env map[string]string, args ...string) (result, simulate.Report) {
		return simulated(t, env, append([]string{t.TempDir(), "--duration", "2s"}, args...)...)
	}
	r, report := run(map[string]string{"NIXL_TELEMETRY_BUFFER_SIZE": "8192"}, "--scenario", "overflow")
	if report.Sum.Capacity != 512 || report.Sum.Operations != 8000 || !strings.Contains(r.err, ", scenario overflow, ") {
		t.Errorf("capacity %d, %d operations, %s", report.Sum.Capacity, report.Sum.Operations, r.err)
	}
	if _, report = run(nil, "--scenario", "failing-peer"); report.Sum.Failed < 20 {
		t.Errorf("%d transfers failed", report.Sum.Failed)
	}
	_, report = run(nil, "--scenario", "overflow", "--capacity", "1024", "--rate", "100", "--name", "x", "--agents", "2")
	if report.Sum.Capacity != 1024 || report.Sum.Operations != 400 || len(report.Agents) != 2 {
		t.Errorf("flags: capacity %d, %d operations", report.Sum.Capacity, report.Sum.Operations)
	}
	if _, report = run(nil, "--scenario", "straggler"); len(report.Agents) != 6 {
		t.Errorf("straggler: %d agents", len(report.Agents))
	}
}

func TestSimulateConsumesItsRingsUnlessTheyHaveAConsumer(t *testing.T) {
	dir := t.TempDir()
	transfer := transferred(1, 1, 1, time.Now())
	own, consumed, other := pushed(t, filepath.Join(dir, "sim-0"), ringbuf.V4, transfer), pushed(t, filepath.Join(dir, "sim-1"), ringbuf.V4, transfer), pushed(t, filepath.Join(dir, "other-0"), ringbuf.V4, transfer)
	consumer, err := ringbuf.OpenReader(consumed.Path(), ringbuf.Consume)
	must.OK(t, err)
	defer consumer.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- consume(ctx, &simulate.FleetConfig{Dir: dir, Prefix: "sim"}, time.Millisecond) }()
	pending := func() (all [3]int) {
		for i, w := range []*ringbuf.Writer{own, consumed, other} {
			all[i], err = w.Len()
			must.OK(t, err)
		}
		return all
	}
	must.EventuallyTrue(t, "one ring is consumed", func() bool { return pending()[0] == 0 })
	stop()
	must.OK(t, <-done)
	if got := pending(); got != [3]int{0, 4, 4} {
		t.Errorf("pending events: %v", got)
	}
}
