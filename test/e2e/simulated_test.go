// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// simulator is a process that runs `nixlring simulate`.
type simulator struct{ *proc.Process }

func startSimulator(t *testing.T, dir string, args ...string) simulator {
	t.Helper()
	args = append([]string{"simulate", dir, "--no-consumer", "--output", "json"}, args...)
	return simulator{proc.Start(t, exec.CommandContext(t.Context(), built.Nixlring, args...))}
}

// wait waits until the simulator, which runs for at least long, exits. It returns its report. It ends
// the test if events didn't reach the rings or were overwritten unread.
func (s simulator) wait(t *testing.T, long time.Duration) (r simulate.Report) {
	t.Helper()
	if code := s.WaitWithin(t, 2*long+must.Patience); code != 0 {
		t.Fatalf("the simulator ended with code %d, want 0", code)
	}
	if err := json.Unmarshal([]byte(s.Stdout.Text()), &r); err != nil {
		t.Fatalf("the simulator's report: %v\n%s", err, s.Stdout.Text())
	}
	for path, a := range r.Agents {
		if a.DroppedStaging+a.DroppedRing+a.Unread > 0 {
			t.Fatalf("%s (%s): %d events written; %d dropped in staging, %d dropped at the ring, %d unread at a restart",
				path, a.Layout, a.Written, a.DroppedStaging, a.DroppedRing, a.Unread)
		}
	}
	return r
}
