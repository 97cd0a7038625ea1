// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// In the Collector's pod, no ring is in /tmp.
func TestLsInNoDirectorySaysHowToFindAgents(t *testing.T) {
	r := nixlring(t.Context(), nil, "ls")
	if !strings.Contains(r.err, "no ring in /tmp\n") {
		t.Skip("there are rings in /tmp")
	}
	if !strings.Contains(r.err, "nixlring top\n") {
		t.Error(r.err)
	}
}
