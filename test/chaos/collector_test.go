// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
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
		args = append(args, "--config="+filepath.Join(built.Root, "examples/collector", s.sample))
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
	cmd := exec.CommandContext(t.Context(), built.Collector, args...)
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
