// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// ready is the log line of a Collector that has started.
const ready = "Everything is ready"

// setup is the configuration of a Collector: an optional sample of examples/collector, and
// overlays.
type setup struct {
	sample   string
	overlays []string // YAML
	env      []string
}

// quiet prevents a Collector from listening on ports that the test hasn't chosen.
const quiet = `
service:
  telemetry:
    logs: {encoding: json, disable_zap_resource: true, sampling: {enabled: false}}
    metrics: {level: none}
`

// command writes the overlays to files and returns the command line.
func (s setup) command(t *testing.T) (args []string) {
	t.Helper()
	if s.sample != "" {
		args = append(args, "--config="+filepath.Join(root, "examples/collector", s.sample))
	}
	for i, overlay := range append([]string{quiet}, s.overlays...) {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("overlay-%d.yaml", i))
		must.OK(t, os.WriteFile(path, []byte(overlay), 0o600))
		args = append(args, "--config="+path)
	}
	return args
}

// collector is a running Collector with a JSON log.
type collector struct{ *proc.Process }

// launch starts a Collector without waiting until it is ready.
func launch(t *testing.T, args, env []string) collector {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), collectorBin, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HEALTH_PORT=0"}, env...)
	return collector{proc.Start(t, cmd)}
}

// start starts a Collector and waits until it is ready.
func (s setup) start(t *testing.T) collector {
	t.Helper()
	c := launch(t, s.command(t), s.env)
	c.WaitFor(t, ready)
	return c
}

// entry is a line of a Collector's log.
type entry struct {
	Level   string `json:"level"`
	Message string `json:"msg"`
	Path    string `json:"path"`
	Error   string `json:"error"`

	line string
}

// entries returns the lines of the log so far.
func (c collector) entries() (list []entry) {
	for _, line := range c.Stderr.Lines() {
		e := entry{line: line}
		if json.Unmarshal([]byte(line), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// complaints returns the warnings and errors in the log, except that the test's directory
// is on a disk.
func (c collector) complaints() (list []entry) {
	for _, e := range c.entries() {
		if e.Level != "info" && e.Level != "debug" && !strings.Contains(e.Message, "rings are on a disk") {
			list = append(list, e)
		}
	}
	return list
}
