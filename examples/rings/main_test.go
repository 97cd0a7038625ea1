// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/examples/internal/otlptest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventsInTheRingsAreExportedOnInterrupt(t *testing.T) {
	dir, b := t.TempDir(), otlptest.Start(t)
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", filepath.Join(t.TempDir(), "events.csv"))
	for i, name := range []string{"one", "two"} {
		a, err := agent.New(name, agent.WithRing(dir))
		must.OK(t, err)
		a.MemoryRegistered(t.Context(), int64(i+1))
		must.OK(t, a.Close())
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	must.OK(t, run(ctx, rings.Config{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)}))
	registered := make(map[string]int64) // last values by agent
	for _, rm := range b.Metrics {
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				if m.GetName() != semconv.MemoryRegistered.Name {
					continue
				}
				for _, dp := range m.GetSum().GetDataPoints() {
					registered[dp.GetAttributes()[0].GetValue().GetStringValue()] = dp.GetAsInt()
				}
			}
		}
	}
	if registered["one"] != 1 || registered["two"] != 2 {
		t.Errorf("the backend has %v", registered)
	}
}

func TestInvalidEnvironmentIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		env, value, want string
	}{
		"CSV":          {"NIXL_TELEMETRY_CSV_FILE", "/nonexistent/x", "NIXL_TELEMETRY_CSV_FILE: open /nonexistent/x"},
		"no endpoint":  {"OTEL_EXPORTER_OTLP_ENDPOINT", "", "set OTEL_EXPORTER_OTLP_ENDPOINT"},
		"run interval": {"NIXL_TELEMETRY_RUN_INTERVAL", "x", "NIXL_TELEMETRY_RUN_INTERVAL=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317")
			t.Setenv(c.env, c.value)
			if err := run(t.Context(), rings.Config{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
