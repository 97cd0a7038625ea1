// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// NIXL never removes a ring, so a host collects thousands. Here, a thousand processes may be
// their agents.
func TestLeftoverRingsAndManyProcessesDelayNothing(t *testing.T) {
	if os.Getenv(variable) == "" || os.Getenv(collectorVariable) == "" {
		t.Skip("run `make container-test`")
	}
	const leftovers, processes = 10_000, 1000
	dir, err := os.MkdirTemp("/dev/shm", "leftovers") //nolint:usetesting // rings are on tmpfs, as in containers
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i := range leftovers {
		must.OK(t, create(t, filepath.Join(dir, fmt.Sprintf("agent-%d", i)), 0).Close())
	}
	for range processes {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Env = []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}
		must.OK(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
	}
	config := filepath.Join(t.TempDir(), "collector.yaml")
	text := fmt.Sprintf(configuration, 5*time.Minute)
	must.OK(t, os.WriteFile(config, []byte(text), 0o600))
	if err := os.MkdirAll("/out", 0o700); err != nil { // only in this namespace
		t.Fatal(err)
	}
	must.OK(t, syscall.Mount("", "/out", "tmpfs", 0, ""))
	run := func() *proc.Process {
		t.Helper()
		c := proc.Start(t, exec.CommandContext(t.Context(), os.Getenv(collectorVariable), "--config="+config))
		c.WaitFor(t, "Everything is ready")
		return c
	}
	var stops, counts []time.Duration
	stop := func(c *proc.Process) {
		t.Helper()
		began := time.Now()
		c.Stop(t, syscall.SIGTERM)
		stops = append(stops, time.Since(began))
	}
	for _, after := range []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond} {
		c := run()
		<-time.After(after) // it may be anywhere in its first search; signals are handled shortly after the start
		stop(c)
	}
	c := run()
	for i := range 5 {
		began := time.Now()
		w := create(t, filepath.Join(dir, fmt.Sprintf("new-%d", i)), 10)
		must.Eventually(t, func() string {
			if h := ringtest.ReadHeader(t, w.Path()); !h.Drained() {
				return fmt.Sprintf("the ring is read up to %d of %d", h.ReadPos, h.WritePos)
			}
			return ""
		})
		counts = append(counts, time.Since(began))
	}
	stop(c)
	for what, took := range map[string][]time.Duration{"a Collector stops": stops, "a new agent is counted": counts} {
		slices.Sort(took)
		t.Logf("%s within %v", what, took)
	}
	// Medians, because another program on the machine may delay one of them.
	if took := stops[len(stops)/2]; took > time.Second {
		t.Errorf("a Collector stops within %v, want at most a second", took)
	}
	if took := counts[len(counts)/2]; took > 2*time.Second {
		t.Errorf("a new agent is counted within %v, want at most two seconds", took)
	}
}

// create creates a ring with some events.
func create(t *testing.T, path string, events int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, ringbuf.V4, 16)
	must.OK(t, err)
	for range events {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}
