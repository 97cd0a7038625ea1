// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package otelcol starts the built Collector in tests.
package otelcol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Setup is the configuration of a Collector: an optional sample configuration, and overlays.
type Setup struct {
	Sample   string   // file in examples/collector; may be empty
	Overlays []string // YAML
	Env      []string
	File     string    // output of its file exporter; default: a new file
	Program  string    // default: built.Collector
	UID      uint32    // user to run as; default: the test's user
	Caps     []uintptr // capabilities of that user
}

// Collector is a running Collector with a JSON log.
type Collector struct {
	*proc.Process

	File *otlpfile.File // output of its file exporter
}

// Start starts a Collector and waits until it is ready. The Collector logs that it is ready shortly
// before it handles signals, so Start also waits until it is idle.
func (s Setup) Start(tb testing.TB) *Collector {
	tb.Helper()
	c := s.Launch(tb)
	c.WaitFor(tb, "Everything is ready")
	must.EventuallyTrue(tb, "idle Collector", func() bool { return proc.Idle(c.PID()) })
	return c
}

// Launch starts a Collector without waiting. The first overlay adds a file exporter for use in
// pipelines, and prevents the Collector from listening on ports that the test hasn't chosen.
func (s Setup) Launch(tb testing.TB) *Collector {
	tb.Helper()
	file := cmp.Or(s.File, filepath.Join(tb.TempDir(), "metrics.json"))
	var args []string
	if s.Sample != "" {
		args = append(args, "--config="+filepath.Join(built.Root, "examples/collector", s.Sample))
	}
	for i, overlay := range append([]string{fmt.Sprintf(`
exporters:
  file: {path: %q, append: true, flush_interval: 20ms}
service:
  telemetry:
    logs: {encoding: json, disable_zap_resource: true, sampling: {enabled: false}}
    metrics: {level: none}
`, file)}, s.Overlays...) {
		path := filepath.Join(tb.TempDir(), fmt.Sprintf("overlay-%d.yaml", i))
		must.OK(tb, os.WriteFile(path, []byte(overlay), 0o644))
		args = append(args, "--config="+path)
	}
	cmd := exec.CommandContext(tb.Context(), cmp.Or(s.Program, built.Collector), args...)
	cmd.Dir = tb.TempDir()
	if s.UID != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: s.UID, Gid: s.UID},
			AmbientCaps: s.Caps,
		}
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "STATE_DIRECTORY=" + tb.TempDir(), "HEALTH_PORT=0"}, s.Env...)
	return &Collector{Process: proc.Start(tb, cmd), File: otlpfile.NewFile(file)}
}

// Every sets the collection interval, without an initial delay. The resource attribute distinguishes
// agents with the same name.
func Every(interval time.Duration) string {
	return fmt.Sprintf(`
receivers:
  nixl_shm:
    initial_delay: 0s
    collection_interval: %v
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
`, interval)
}

// ExportTo replaces the exporters of the pipeline of metrics.
func ExportTo(exporters ...string) string {
	return fmt.Sprintf("service: {pipelines: {metrics: {exporters: [%s]}}}\n", strings.Join(exporters, ", "))
}

// Entry is a line of a Collector's log.
type Entry struct {
	Level   string `json:"level"`
	Message string `json:"msg"`
	Path    string `json:"path"`
	Error   string `json:"error"`

	Line string `json:"-"` // all of it
}

// Entries returns the lines of the log.
func (c *Collector) Entries() (list []Entry) {
	for _, line := range c.Stderr.Lines() {
		e := Entry{Line: line}
		if json.Unmarshal([]byte(line), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// Complaints returns warnings and errors in the log, except that the test's directory is on a disk.
func (c *Collector) Complaints() (list []Entry) {
	for _, e := range c.Entries() {
		if e.Level != "info" && e.Level != "debug" && !strings.Contains(e.Message, "rings are on a disk") {
			list = append(list, e)
		}
	}
	return list
}

// NoComplaints fails the test if there are complaints.
func (c *Collector) NoComplaints(tb testing.TB) {
	tb.Helper()
	for _, e := range c.Complaints() {
		tb.Errorf("warning or error in the log: %s", e.Line)
	}
}

// Totals returns the totals in the Collector's file.
func (c *Collector) Totals(tb testing.TB) otlpfile.Totals {
	tb.Helper()
	totals, err := c.File.Totals()
	must.OK(tb, err)
	return totals
}

// Collections returns the collections in the Collector's file.
func (c *Collector) Collections(tb testing.TB) []pmetric.Metrics {
	tb.Helper()
	list, err := c.File.Collections()
	must.OK(tb, err)
	return list
}

// AwaitTotals waits until the file contains the wanted totals, except for the series in but.
func (c *Collector) AwaitTotals(tb testing.TB, want otlpfile.Totals, but ...string) {
	tb.Helper()
	must.Eventually(tb, func() string { return otlpfile.Diff(want, c.Totals(tb), but...) })
}
