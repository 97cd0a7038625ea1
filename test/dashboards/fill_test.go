//go:build linux

package dashboards

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// fill has the built Collector send to some backends what there can be: agents
// of all layouts in all scenarios, one that is slow, a ring-kernel runtime and a
// split-inference session. What takes too long, or other hosts, is made up.
func fill(t *testing.T, backends ...backend) {
	t.Helper()
	for _, b := range backends {
		b.past(t)
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
	slow := simulate.FleetConfig{Dir: dir, Prefix: "slow", Agents: 1}
	slow.Agent.Rate, slow.Agent.Traffic = 100, simulate.KVCache()
	slow.Agent.Traffic.Latency = 3 * time.Second // as its ring says; nobody waits
	run(t, slow)

	otlp := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	startCollector(t, dir, otlp, backends)
	example(t, "ringkernel", otlp, "-bad", "0.05", "-pause-every", "2s", "-pause", "500ms")
	example(t, "session", otlp, "-dir", t.TempDir(), "-tokens", "1000000")
}

// run runs agents until the end of the test.
func run(t *testing.T, cfg simulate.FleetConfig) {
	t.Helper()
	cfg.Agent.Seed = 1
	fleet, err := simulate.NewFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := fleet.Run(ctx); err != nil {
			t.Errorf("agents %s: %v", cfg.Prefix, err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// startCollector starts one that reads a directory and takes OTLP, and sends
// both to all backends.
func startCollector(t *testing.T, dir, otlp string, backends []backend) {
	t.Helper()
	exporters, names := "", ""
	for _, b := range backends {
		exporters += fmt.Sprintf("  otlp_http/%s: {endpoint: %q}\n", b.name, b.otlp)
		names += "otlp_http/" + b.name + ", "
	}
	config := filepath.Join(t.TempDir(), "collector.yaml")
	text := fmt.Sprintf(`
receivers:
  nixl_shm: {directories: [%q], collection_interval: 1s, host_name: %s}
  otlp: {protocols: {grpc: {endpoint: %q}}}
exporters:
%sservice:
  pipelines: {metrics: {receivers: [nixl_shm, otlp], exporters: [%s]}}
  telemetry: {metrics: {level: none}}
`, dir, host, otlp, exporters, names)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	proc.Start(t, exec.CommandContext(t.Context(), program(t, "OTELCOL_NIXL"), "--config="+config)).
		WaitFor(t, "Everything is ready")
}

// example runs one of the project's examples until the end of the test.
func example(t *testing.T, name, otlp string, args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	build.Dir = file(t, "examples", name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build example %s: %v\n%s", name, err, out)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+otlp, "OTEL_METRIC_EXPORT_INTERVAL=1000")
	proc.Start(t, cmd)
}
