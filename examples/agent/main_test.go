// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestTransfersAreExportedAndInTheCSVFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", file)
	var metrics bytes.Buffer
	exporter, err := stdoutmetric.New(stdoutmetric.WithWriter(&metrics))
	must.OK(t, err)
	writes, missing := runBriefly(t, metric.NewPeriodicReader(exporter), "")
	for _, want := range []string{`"nixl.transfer.requests"`, fmt.Sprintf(`"Value":%d`, writes), `"nixl.agent.name"`} {
		if !strings.Contains(metrics.String(), want) {
			t.Errorf("no %s in %s", want, &metrics)
		}
	}
	rows, err := os.ReadFile(file)
	must.OK(t, err)
	for event, want := range map[string]int{",agent_tx_requests_num,": writes, ",agent_err_not_found,": missing} {
		if got := strings.Count(string(rows), event); got != want {
			t.Errorf("%d rows with %s, want %d", got, event, want)
		}
	}
}

func TestTransfersAreInTheRing(t *testing.T) {
	dir := t.TempDir()
	runBriefly(t, nil, dir)
	if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
		t.Errorf("the ring is %v, %v", info, err)
	}
}

func runBriefly(t *testing.T, reader metric.Reader, ring string) (writes, missing int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	must.OK(t, run(ctx, reader, ring, &out))
	if _, err := fmt.Sscanf(out.String(), "%d writes, %d not found", &writes, &missing); err != nil || writes == 0 {
		t.Fatalf("the output is %q: %v", &out, err)
	}
	return writes, missing
}
