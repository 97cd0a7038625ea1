// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllEventsAreInTheRingAndInTheCSVFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "events.csv")
	t.Setenv("NIXL_TELEMETRY_CSV_FILE", file)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "")
	var out bytes.Buffer
	s := settings{name: "a", ring: dir, duration: 100 * time.Millisecond, rate: 1000, blocks: 4, block: 16}
	must.OK(t, run(t.Context(), s, &out))
	var did totals
	if _, err := fmt.Sscanf(out.String(), "%d writes, %d reads, %d bytes, %d not found",
		&did.writes, &did.reads, &did.bytes, &did.missing); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	want := map[string]int64{
		"agent_tx_requests_num": did.writes, "agent_rx_requests_num": did.reads, "agent_err_not_found": did.missing,
		"agent_memory_registered": 1, "agent_memory_deregistered": 1,
	}
	for from, got := range map[string]map[string]int64{"ring": inRing(t, filepath.Join(dir, "a")), "CSV": inCSV(t, file)} {
		for name, n := range want {
			if got[name] != n {
				t.Errorf("the %s has %d of %s, want %d", from, got[name], name, n)
			}
		}
	}
}

func TestRunWithoutABackendPrintsAWarning(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "")
	for ring, want := range map[string]bool{"": true, t.TempDir(): false} {
		var out bytes.Buffer
		s := settings{name: "a", ring: ring, duration: time.Millisecond, rate: 1000, blocks: 4, block: 16}
		must.OK(t, run(t.Context(), s, &out))
		if warned := strings.HasPrefix(out.String(), "no backend: pass -ring or set OTEL_EXPORTER_OTLP_ENDPOINT\n"); warned != want {
			t.Errorf("with -ring %q, the output is %q", ring, &out)
		}
	}
}

func inRing(t *testing.T, path string) map[string]int64 {
	t.Helper()
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	got := make(map[string]int64)
	if _, err := r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			got[e.EventName()]++
		}
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func inCSV(t *testing.T, path string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	must.OK(t, err)
	got := make(map[string]int64)
	for row := range strings.Lines(string(text)) {
		got[strings.Split(row, ",")[2]]++
	}
	return got
}

func TestInvalidSettingsAreRejected(t *testing.T) {
	good := settings{name: "a", duration: time.Millisecond, rate: 1, blocks: 1, block: 1}
	for name, c := range map[string]struct {
		change func(*settings)
		env    [2]string
		want   string
	}{
		"rate": {func(s *settings) { s.rate = 0 }, [2]string{}, "-rate"},
		"ring": {func(s *settings) { s.ring = "/nonexistent" }, [2]string{}, "create ring /nonexistent/a"},
		"CSV":  {func(*settings) {}, [2]string{"NIXL_TELEMETRY_CSV_FILE", "/nonexistent/x"}, "NIXL_TELEMETRY_CSV_FILE: open /nonexistent/x"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			s := good
			c.change(&s)
			if err := run(t.Context(), s, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
