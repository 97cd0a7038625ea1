// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// The kinds of histograms in the receiver's configuration.
const explicit, exponential = "explicit", "exponential"

// fill makes the built Collector send all kinds of metrics to the backends: of
// agents with all layouts in all scenarios, of agents with problems, of a
// ring-kernel runtime, of a split-inference session, and of the Collector itself.
// At the end, an agent exits and the Collector of another host is killed.
func fill(t *testing.T, kind string, backends ...backend) {
	t.Helper()
	for _, b := range backends {
		b.sendSynthetic(t, kind)
	}
	dir := t.TempDir()
	for _, s := range simulate.Scenarios() {
		cfg := simulate.FleetConfig{Dir: dir, Prefix: s.Name, Agents: 1}
		cfg.Agent.Traffic = simulate.KVCache()
		cfg.Agent.Traffic.ErrorShare = 0.01
		s.Set(&cfg)
		if s.Name == "steady" {
			cfg.Layouts = ringbuf.Layouts()
			cfg.Agents = len(cfg.Layouts)
		}
		run(t, cfg)
	}
	slow := simulate.KVCache()
	slow.Latency = 3 * time.Second // only in the events; the simulation doesn't wait
	run(t, agents(dir, "slow", slow))
	restarts := agents(dir, "restarts", simulate.KVCache())
	restarts.Agent.RestartEvery = 2 * time.Second
	run(t, restarts)
	dies := run(t, agents(dir, "dies", simulate.KVCache()))
	truncated(t, dir, "dies-0")

	otlp := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	startCollector(t, dir, host, otlp, kind, backends)
	example(t, "ringkernel", otlp, kind)
	example(t, "session", otlp, kind, "-dir", t.TempDir(), "-tokens", "1000000")

	other := t.TempDir()
	run(t, agents(other, "unwatched", simulate.KVCache()))
	collector := startCollector(t, other, deadHost, fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t)), kind, backends)

	for _, b := range backends {
		b.hasData(t, "agent that exits", `increase(nixl_transfer_requests_total{nixl_agent_name="dies-0"}[1m]) > 0`)
		b.hasData(t, "Collector that is killed", fmt.Sprintf(`nixl_telemetry_ring_utilization_ratio{host_name=%q} > 0`, deadHost))
	}
	dies()
	collector.Signal(t, syscall.SIGKILL)
	collector.Wait(t)
}

func agents(dir, name string, traffic simulate.Traffic) simulate.FleetConfig {
	cfg := simulate.FleetConfig{Dir: dir, Prefix: name, Agents: 1}
	cfg.Agent.Rate, cfg.Agent.Traffic = 100, traffic
	return cfg
}

// truncated writes a copy of the first half of an agent's ring, which the receiver
// refuses.
func truncated(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, "truncated"), text[:len(text)/2], 0o600))
}

// run runs agents until the end of the test, or until stop is called.
func run(t *testing.T, cfg simulate.FleetConfig) (stop func()) {
	t.Helper()
	cfg.Agent.Seed = 1
	fleet, err := simulate.NewFleet(cfg)
	must.OK(t, err)
	must.OK(t, fleet.Start())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := fleet.Run(ctx); err != nil {
			t.Errorf("agents %s: %v", cfg.Prefix, err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// startCollector starts a Collector that reads the rings in a directory and
// receives OTLP. It sends these metrics and its own to all backends, and to an
// unreachable one.
func startCollector(t *testing.T, dir, hostName, otlp, kind string, backends []backend) *proc.Process {
	t.Helper()
	exporters, names, readers := "", "", ""
	for _, b := range backends {
		exporters += fmt.Sprintf("  otlp_http/%s: {endpoint: %q}\n", b.name, b.otlp)
		names += "otlp_http/" + b.name + ", "
		readers += fmt.Sprintf("      - periodic: {interval: 1000, exporter: {otlp: {protocol: http/protobuf, endpoint: %q}}}\n", b.otlp+"/v1/metrics")
	}
	config := filepath.Join(t.TempDir(), "collector.yaml")
	text := fmt.Sprintf(`
receivers:
  nixl_shm:
    directories: [%q]
    collection_interval: 1s
    resource: {host.name: %s}
    histograms: {duration: {kind: %[3]s}, size: {kind: %[3]s}, throughput: {kind: %[3]s}}
  otlp: {protocols: {grpc: {endpoint: %[4]q}}}
exporters:
%[5]s  otlp_http/unreachable: {endpoint: "http://127.0.0.1:1", retry_on_failure: {enabled: false}}
service:
  pipelines: {metrics: {receivers: [nixl_shm, otlp], exporters: [%[6]s otlp_http/unreachable]}}
  telemetry:
    logs: {level: error, output_paths: [/dev/null]}
    metrics:
      readers:
%[7]s`, dir, hostName, kind, otlp, exporters, names, readers)
	must.OK(t, os.WriteFile(config, []byte(text), 0o600))
	return proc.Start(t, exec.CommandContext(t.Context(), built.Path(t, "OTELCOL_NIXL"), "--config="+config))
}

// example runs one of the project's examples until the end of the test.
func example(t *testing.T, name, otlp, kind string, args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	build.Dir = file(t, "examples", name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build example %s: %v\n%s", name, err, out)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+otlp, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_TRACES_EXPORTER=none", "OTEL_METRIC_EXPORT_INTERVAL=1000")
	if kind == exponential {
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=base2_exponential_bucket_histogram")
	}
	proc.Start(t, cmd)
}
