// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The tests in this file need the PID namespace of the tests, but no containers.

// run starts a process of an agent with a directory for its rings. It ends with the test.
func run(t *testing.T, dir string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append([]string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}, env...)
	_, err := cmd.StdinPipe() // the program runs until its input ends
	must.OK(t, err)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it was killed
}

// runCollector starts a Collector that serves a Prometheus page.
func runCollector(t *testing.T) (c *proc.Process, page string) {
	t.Helper()
	if os.Getenv(variable) == "" || os.Getenv(collectorVariable) == "" {
		t.Skip("run `make container-test`")
	}
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	config := filepath.Join(t.TempDir(), "collector.yaml")
	must.OK(t, os.WriteFile(config, []byte(fmt.Sprintf(`
receivers:
  nixl_shm: {discovery: {processes: {interval: 1s, otel_resource_attributes: ["*"]}}, initial_delay: 0s, collection_interval: 100ms}
exporters:
  prometheus: {endpoint: %q, resource_constant_labels: {included: ["*"]}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [prometheus]}}
`, address)), 0o600))
	c = proc.Start(t, exec.CommandContext(t.Context(), os.Getenv(collectorVariable), "--config="+config))
	c.WaitFor(t, "Everything is ready")
	return c, "http://" + address + "/metrics"
}

// create creates a ring with events.
func create(t *testing.T, dir, name string, events int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, 16)
	must.OK(t, err)
	for range events {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// Prometheus rejects a page with a repeated or reserved label, and with it all agents.
func TestAttributesOfHostileAgentsKeepThePrometheusPageValid(t *testing.T) {
	_, page := runCollector(t)
	for _, a := range attackers() {
		if a.attack == "flood" {
			var env []string
			for _, option := range a.options {
				env = append(env, strings.TrimPrefix(option, "--env="))
			}
			run(t, t.TempDir(), env, shared.agentProgram(), "-attack=flood")
		}
	}
	dir := t.TempDir()
	create(t, dir, "own", 10)
	run(t, dir, nil, "sleep", "1000")
	must.Eventually(t, func() string { return invalidPage(t, page, `,service_k`, `nixl_agent_name="own"`) })
}

// invalidPage returns why a page isn't valid, or doesn't have these labels.
func invalidPage(t *testing.T, url string, labels ...string) string {
	t.Helper()
	response, err := http.Get(url) //nolint:noctx // ends with the Collector
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Sprintf("status %d, %v: %.300s", response.StatusCode, err, page)
	}
	for line := range strings.Lines(string(page)) {
		seen := make(map[string]bool)
		_, rest, _ := strings.Cut(line, "{")
		for pair := range strings.SplitSeq(rest, `",`) {
			name, _, _ := strings.Cut(pair, "=")
			if seen[name] {
				return "label " + name + " is repeated in " + line
			}
			seen[name] = true
		}
	}
	for _, label := range labels {
		if !strings.Contains(string(page), label) {
			return fmt.Sprintf("the page doesn't have %s:\n%.2000s", label, page)
		}
	}
	return ""
}

// NIXL never removes a ring, so a host collects thousands. Here, a thousand processes may be
// their agents. A search that takes time for each pair of them takes minutes.
func TestLeftoverRingsAndManyProcessesDelayNothing(t *testing.T) {
	const leftovers, processes, limit = 10_000, 1000, 15 * time.Second
	dir, err := os.MkdirTemp("/dev/shm", "leftovers") //nolint:usetesting // rings are on tmpfs, as in containers
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i := range leftovers {
		must.OK(t, create(t, dir, fmt.Sprintf("agent-%d", i), 0).Close())
	}
	for range processes {
		run(t, dir, nil, "sleep", "1000")
	}
	c, _ := runCollector(t)
	began := time.Now()
	w := create(t, dir, "new", 10)
	must.EventuallyTrue(t, "drained ring", func() bool { return ringtest.ReadHeader(t, w.Path()).Drained() })
	if took := time.Since(began); took > limit {
		t.Errorf("a new agent was counted within %v, want at most %v", took, limit)
	}
	t.Logf("a new agent was counted within %v", time.Since(began))
	began = time.Now()
	c.Stop(t, syscall.SIGTERM)
	if took := time.Since(began); took > limit {
		t.Errorf("the Collector stopped within %v, want at most %v", took, limit)
	}
	t.Logf("the Collector stopped within %v", time.Since(began))
}
