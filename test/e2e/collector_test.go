// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// collector is a running Collector with a JSON log.
type collector struct {
	*proc.Process

	file *otlpfile.File // output of its file exporter
}

// setup is the configuration of a Collector: an optional sample configuration, and overlays.
type setup struct {
	sample   string   // file in examples/collector; may be empty
	overlays []string // YAML
	env      []string
	file     string    // output of the file exporter; default: a new file
	program  string    // program; default: built.Collector
	uid      uint32    // user to run as; default: the test's user
	caps     []uintptr // capabilities of that user
}

// start starts a Collector and waits until it is ready. The Collector logs that it is ready shortly
// before it handles signals, so start also waits until it is idle.
func (s setup) start(t *testing.T) *collector {
	t.Helper()
	c := s.launch(t)
	c.WaitFor(t, "Everything is ready")
	must.Eventually(t, func() string {
		if proc.Idle(c.PID()) {
			return ""
		}
		return "the Collector is busy"
	})
	return c
}

func (s setup) launch(t *testing.T) *collector {
	t.Helper()
	c := &collector{file: otlpfile.NewFile(s.file)}
	if s.file == "" {
		c.file = otlpfile.NewFile(filepath.Join(t.TempDir(), "metrics.json"))
	}
	var args []string
	if s.sample != "" {
		args = append(args, "--config="+filepath.Join(built.Root, "examples/collector", s.sample))
	}
	for i, overlay := range append([]string{quiet(c.file.Path())}, s.overlays...) {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("overlay-%d.yaml", i))
		must.OK(t, os.WriteFile(path, []byte(overlay), 0o644))
		args = append(args, "--config="+path)
	}
	cmd := exec.CommandContext(t.Context(), cmp.Or(s.program, built.Collector), args...)
	cmd.Dir = t.TempDir()
	if s.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: s.uid, Gid: s.uid},
			AmbientCaps: s.caps,
		}
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "STATE_DIRECTORY=" + t.TempDir(), "HEALTH_PORT=0"}, s.env...)
	c.Process = proc.Start(t, cmd)
	return c
}

// quiet adds a file exporter for use in pipelines, and prevents a Collector from listening on ports
// that the test hasn't chosen.
func quiet(file string) string {
	return fmt.Sprintf(`
exporters:
  file: {path: %q, append: true, flush_interval: 20ms}
service:
  telemetry:
    logs: {encoding: json, disable_zap_resource: true, sampling: {enabled: false}}
    metrics: {level: none}
`, file)
}

// every sets the collection interval, without an initial delay. The resource attribute distinguishes
// agents with the same name.
func every(interval time.Duration) string {
	return fmt.Sprintf(`
receivers:
  nixl_shm:
    initial_delay: 0s
    collection_interval: %v
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
`, interval)
}

// exportTo replaces the exporters of the pipeline.
func exportTo(exporters ...string) string {
	return fmt.Sprintf("service: {pipelines: {metrics: {exporters: [%s]}}}\n", strings.Join(exporters, ", "))
}

// rings returns the environment variable with the telemetry directory.
func rings(dir string) string { return "NIXL_TELEMETRY_DIR=" + dir }

// sink starts a Collector that receives OTLP and writes it to its file. It returns the Collector and
// its address.
func sink(t *testing.T, protocol, address string) (c *collector, listening string) {
	t.Helper()
	c = setup{overlays: []string{fmt.Sprintf(`
receivers:
  otlp: {protocols: {%s: {endpoint: %q}}}
service:
  pipelines: {metrics: {receivers: [otlp], exporters: [file]}}
`, protocol, address)}}.start(t)
	for _, e := range built.Entries(c.Process) {
		if strings.HasPrefix(e.Message, "Starting ") && strings.HasSuffix(e.Message, " server") {
			listening = e.Endpoint
		}
	}
	if listening == "" {
		t.Fatal("the Collector's log doesn't contain its address")
	}
	return c, listening
}

// anyPort lets the kernel choose a port.
const anyPort = "127.0.0.1:0"

// noComplaints fails the test if the log contains warnings or errors, except that the test's
// directory is on a disk.
func (c *collector) noComplaints(t *testing.T) {
	t.Helper()
	for _, e := range built.Complaints(c.Process) {
		t.Errorf("warning or error in the log: %s", e.Line)
	}
}

// totals returns the totals in the Collector's file.
func (c *collector) totals(t *testing.T) otlpfile.Totals {
	t.Helper()
	totals, err := c.file.Totals()
	must.OK(t, err)
	return totals
}

// collections returns the collections in the Collector's file.
func (c *collector) collections(t *testing.T) []pmetric.Metrics {
	t.Helper()
	list, err := c.file.Collections()
	must.OK(t, err)
	return list
}

// await calls check with the totals in the file until it returns "".
func (c *collector) await(t *testing.T, check func(otlpfile.Totals) string) {
	t.Helper()
	must.Eventually(t, func() string { return check(c.totals(t)) })
}

// awaitTotals waits until the file contains the wanted totals.
func (c *collector) awaitTotals(t *testing.T, want otlpfile.Totals, but ...string) {
	t.Helper()
	c.await(t, func(got otlpfile.Totals) string { return diff(want, got, but...) })
}
