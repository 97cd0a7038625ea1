// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// A release with another version than the catalog would report the wrong scope
// version.
func TestReleaseMustHaveTheVersionOfTheCatalog(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "scripts/tag-release.sh", "v"+semconv.Version+"-other")
	cmd.Dir = ringtest.Root(t)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "but the catalog in semconv/scope.go has v"+semconv.Version) {
		t.Errorf("%v\n%s", err, out)
	}
}
