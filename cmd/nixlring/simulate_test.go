// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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

// The golden file has the reports of simulations with a fake clock, except for the metrics in JSON, which package simulate
// compares with the rings.
func TestSimulateMatchesTheGoldenFile(t *testing.T) {
	var got strings.Builder
	for _, command := range []string{
		"simulate --duration 200ms --error-rate 0.2 --seed 7 -o json",
		"simulate --duration 200ms --error-rate 0.2 --seed 8 -o json",
		"simulate --agents 5 --layout mixed --duration 5s --name decode -o json",
		"simulate --agents 2 --restart-every 9s --rate 0", // until a signal
		"NIXL_TELEMETRY_DIR=none NIXL_TELEMETRY_BUFFER_SIZE=512 NIXL_TELEMETRY_RUN_INTERVAL=500 simulate --duration 5s --rate 10 -o json",
		"NIXL_TELEMETRY_BUFFER_SIZE=12 simulate",
		"NIXL_TELEMETRY_RUN_INTERVAL=soon simulate",
		"NIXL_TELEMETRY_BUFFER_SIZE=8192 simulate --scenario overflow --duration 2s -o json",
		"simulate --scenario overflow --duration 2s --rate 100 --agents 2 -o json",
		"simulate --scenario failing-peer --duration 2s",
		"simulate --scenario straggler --duration 1s",
	} {
		dir, env, words := t.TempDir(), make(map[string]string), strings.Fields(command)
		for words[0] != "simulate" {
			name, value, _ := strings.Cut(words[0], "=")
			env[name], words = value, words[1:]
		}
		if !slices.Contains(words, "--seed") {
			words = append(words, "--seed", "7")
		}
		var r result
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // a signal cancels a context
			defer cancel()
			r = nixlring(ctx, env, append(words, dir, "--no-consumer")...)
		})
		var report simulate.Report
		if json.Unmarshal([]byte(r.out), &report) == nil {
			names := slices.Sorted(maps.Keys(report.Agents))
			r.out = fmt.Sprintf("%v, with %d metrics each: %+v\n", names, len(report.Agents[names[0]].Points), report.Sum)
		}
		fmt.Fprintf(&got, "$ %s\n%s%s[exit code %d]\n\n", command, strings.ReplaceAll(r.err, dir, "rings"), strings.ReplaceAll(r.out, dir, "rings"), r.code)
	}
	golden.Compare(t, *update, "simulate.txt", got.String())
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
