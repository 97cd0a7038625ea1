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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// The tests of the built Collector run this example with OTLP.
func TestTransfersAreInTheRingAndTheCSVFile(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", file)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	must.OK(t, run(ctx, nil, dir, &out))
	var writes, missing int
	if _, err := fmt.Sscanf(out.String(), "%d writes, %d not found", &writes, &missing); err != nil || writes == 0 {
		t.Fatalf("the output is %q: %v", &out, err)
	}
	rows, err := os.ReadFile(file)
	must.OK(t, err)
	for event, want := range map[string]int{",agent_tx_requests_num,": writes, ",agent_err_not_found,": missing} {
		if got := strings.Count(string(rows), event); got != want {
			t.Errorf("%d rows with %s, want %d", got, event, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
		t.Errorf("the ring is %v, %v", info, err)
	}
}
