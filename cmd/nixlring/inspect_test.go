// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Metrics and alerts have only the last part of the name that top shows.
func TestInspectFindsAgentsByTheNameInMetrics(t *testing.T) {
	var agents []diagnose.Agent
	for _, name := range []string{"decode-0/main/sim-0", "decode-0/main/sim-1", "decode-1/main/sim-1", "alone", "x/alone"} {
		agents = append(agents, diagnose.Agent{Identity: diagnose.Identity{Name: name}, Path: "/" + name})
	}
	for name, want := range map[string]string{
		"decode-1/main/sim-1": "/decode-1/main/sim-1 <nil>",
		"sim-0":               "/decode-0/main/sim-0 <nil>",
		"alone":               "/alone <nil>",
		"im-0":                " <nil>",
		"sim-1":               " sim-1: 2 agents have this name; specify one of them as nixlring top shows it, such as decode-0/main/sim-1",
	} {
		path, err := named(agents, name)
		if got := fmt.Sprint(path, " ", err); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
