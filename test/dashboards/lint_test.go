// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// The linter applies the exclusions in the file .lint next to the dashboards.
func TestDashboardLinterFindsNothing(t *testing.T) {
	paths, err := filepath.Glob(file(t, "dashboards", "grafana", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	linter := built.Path(t, "DASHBOARD_LINTER")
	for _, path := range paths {
		if out, err := exec.CommandContext(t.Context(), linter, "lint", "--strict", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(path), err, out)
		}
	}
}
