// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestEventsInTheRingsAreExportedOnInterrupt(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", file)
	a, err := agent.New("one", agent.WithRing(dir))
	must.OK(t, err)
	a.MemoryRegistered(t.Context(), 4711)
	must.OK(t, a.Close())

	var metrics bytes.Buffer
	exporter, err := stdoutmetric.New(stdoutmetric.WithWriter(&metrics))
	must.OK(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	must.OK(t, run(ctx, exporter, rings.Config{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)}))
	for _, want := range []string{`"nixl.memory.registered"`, `"Value":4711`} {
		if !strings.Contains(metrics.String(), want) {
			t.Errorf("no %s in %s", want, &metrics)
		}
	}
	if rows, err := os.ReadFile(file); err != nil || !strings.Contains(string(rows), ",agent_memory_registered,4711\n") {
		t.Errorf("the CSV file is %s, %v", rows, err)
	}
}
