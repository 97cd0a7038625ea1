// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Only v1 has times, and names of errors that this release doesn't know.
func TestGoldenLogs(t *testing.T) {
	for _, layout := range []ringbuf.Layout{ringbuf.V1, ringbuf.V4} {
		t.Run(layout.String(), func(t *testing.T) {
			events := slices.Concat(
				write(64<<20, 2_100_000, 70), // changed to receiving
				write(math.MaxUint64, math.MaxUint64, math.MaxUint64),
				write(999, 50_001, 1), write(999, 50_000, 1), // the second isn't slow
				[]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrRemoteDisconnect, 1)})
			events[2].Type, events[3].Type = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
			for i, e := range events {
				events[i].Name, events[i].Named = ringbuf.MakeName(e.Type.LegacyName()), layout.Named()
			}
			records := 4
			if layout.Named() {
				events = append(events, ringbuf.NewNamedEvent(ringbuf.CategoryError, "SOMETHING_ELSE", 1),
					ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "progress", 1))
				records++
			}
			for i := range events {
				events[i].TimestampMicros = 1_700_000_000_123_456
			}
			events[3].TimestampMicros = math.MaxInt64 / 1000
			events[7].TimestampMicros = math.MaxInt64/1000 + 1 // unset in the log
			dir := t.TempDir()
			push(t, ring(t, dir, "agent", layout, 64), events...)
			h := newHarness(t, dir, func(c *Config) {
				c.Logs.SlowTransfer = 50 * time.Millisecond
				c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
				c.Resource = map[string]string{"k8s.cluster.name": "east"}
			}).withLogs()
			h.on.now = newClock().now
			checkGoldenLogs(t, "logs_"+layout.String(), h.start().awaitLogged(records))
		})
	}
}

// checkGoldenLogs compares the records of an agent with a golden file, or rewrites the file.
func checkGoldenLogs(t *testing.T, name string, got plog.Logs) {
	t.Helper()
	file, first := filepath.Join("testdata", "golden", name+".yaml"), got.ResourceLogs().At(0)
	for i := 1; i < got.ResourceLogs().Len(); i++ { // of a later export
		got.ResourceLogs().At(i).ScopeLogs().At(0).LogRecords().MoveAndAppendTo(first.ScopeLogs().At(0).LogRecords())
	}
	got.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool { return rl != first })
	for _, key := range elsewhere {
		if v, ok := first.Resource().Attributes().Get(key); ok {
			v.SetStr("depends on the directory")
		}
	}
	if *update {
		must.OK(t, golden.WriteLogsToFile(file, got))
	}
	want, err := golden.ReadLogs(file)
	must.OK(t, err)
	object := func(logs plog.Logs) (all any) {
		text, err := new(plog.JSONMarshaler).MarshalLogs(logs)
		must.OK(t, err)
		must.OK(t, json.Unmarshal(text, &all))
		return all
	}
	if d := cmp.Diff(object(want), object(got)); d != "" {
		t.Errorf("%s (-want +got)\n%s", file, d)
	}
}

func TestNothingIsLoggedIfDisabled(t *testing.T) {
	h := agentHarness(t, func(c *Config) { c.Logs.Errors, c.Logs.SlowTransfer = false, 0 }).withLogs()
	h.push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	h.push(write(1000, 1e9, 10)...)
	h.start()
	if got := one(t, h.shutdown()).int("nixl.errors{error.type=backend}"); got != 1 || len(h.records) > 0 {
		t.Errorf("%d errors in the metrics, want 1; %d in the log, want none", got, len(h.records))
	}
}

// Records of two runs of an agent can be in one export.
func TestLogRecordsHaveTheResourceOfTheirRun(t *testing.T) {
	h := newHarness(t, t.TempDir()).onlyLogs()
	h.create()
	for name, change := range map[string]func(*record){
		"the same": nil,
		"ID":       func(r *record) { r.ID = "other" },
		"path":     func(r *record) { r.Path = "/other" },
		"layout":   func(r *record) { r.failure.Layout = ringbuf.V1 },
		"resource": func(r *record) { r.Resource = attribute.NewSet() },
		"process":  func(r *record) { r.Process = attribute.NewSet() },
	} {
		first := record{Agent: discovered().Agent, failure: tally.Error{Type: ringbuf.TypeErrBackend, Layout: ringbuf.V4}}
		next, want := first, 1
		if change != nil {
			change(&next)
			want = 2
		}
		if got := h.own().slow.records.build([]record{first, next}).ResourceLogs().Len(); got != want {
			t.Errorf("%s: %d resources, want %d", name, got, want)
		}
	}
	must.OK(t, h.logs.Shutdown(t.Context()))
}
