// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// One of six agents has a tenth of the others' bandwidth. Its slow transfers leave a recording that names it.
func TestTheRecordingOfASlowTransferNamesTheStraggler(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "recordings")
	c := setup{
		sample: "local.yaml",
		overlays: []string{every(time.Second), exportTo("file"), fmt.Sprintf(`
receivers:
  nixl_shm:
    flight_recorder: {directory: %q}
    logs: {min_throughput: 6e9, min_size: 16777216} # only the straggler is slower
`, to)},
		env: []string{rings(dir)},
	}.start(t)
	const length = 4 * time.Second
	simulator := startSimulator(t, dir, "--scenario", "straggler", "--seed", "3", "--duration", length.String())
	nothingDropped(t, simulator.wait(t, length))
	c.Stop(t, syscall.SIGTERM)

	files, err := filepath.Glob(filepath.Join(to, "*"))
	must.OK(t, err)
	if len(files) != 1 || !strings.HasSuffix(files[0], "-slow_transfer-sim-3.jsonl.zst") {
		t.Fatalf("%q", files)
	}
	var verdict struct {
		Agents int `json:"agents"`
		Cause  struct {
			Kind  string `json:"kind"`
			Agent string `json:"agent"`
		} `json:"cause"`
		Findings []struct {
			Kind string `json:"kind"`
			What string `json:"what"`
		} `json:"findings"`
	}
	nixlring(t, &verdict, "why", files[0], "-o", "json")
	if verdict.Agents != 6 || verdict.Cause.Kind != "slow_transfer" || verdict.Cause.Agent != "sim-3" || len(verdict.Findings) != 1 ||
		verdict.Findings[0].Kind != "straggler" || !strings.HasPrefix(verdict.Findings[0].What, "sim-3 moves data at ") {
		t.Errorf("%+v", verdict)
	}
}
