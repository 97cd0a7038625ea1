// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestRunRecordsAllPackets(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	dir := filepath.Join(t.TempDir(), "telemetry")
	var out bytes.Buffer
	must.OK(t, run(t.Context(), []string{"-dir", dir, "-tokens", "3", "-layers", "4"}, &out))
	r, err := session.Analyze(dir)
	must.OK(t, err)
	if r.Written == nil || r.Written.TotalTokens != 10 || r.Written.TotalPackets != r.Summary.TotalPackets {
		t.Errorf("the summary is %+v, %v", r.Written, r.Problem)
	}
	// Per token, 2 packets plus 3 per layer succeed. Failed packets are retried.
	if got := r.Summary.TotalPackets - r.Summary.FailedPackets; got != 3*(2+4*3) {
		t.Errorf("%d packets succeeded", got)
	}
	for _, part := range []string{"Packets: ", "igpu_expert_ffn_layer_3", "3 generated, 7 prompt"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in:\n%s", part, out.String())
		}
	}
}

func TestInterruptedRunClosesTheSession(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := run(ctx, []string{"-dir", dir}, &bytes.Buffer{}); err == nil {
		t.Error("no error")
	}
	if r, err := session.Analyze(dir); err != nil || r.Written == nil {
		t.Errorf("the session wasn't closed: %v", err)
	}
}
