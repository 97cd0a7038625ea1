// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// agent is a ring that a test writes event by event, with the written events.
type agent struct {
	*ringbuf.Writer

	events []ringbuf.Event
}

func newAgent(t *testing.T, dir, name string) *agent {
	t.Helper()
	const capacity = 4096
	w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, capacity)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return &agent{Writer: w}
}

// transfer writes the events of several transfers. All events differ, so that a test detects if one
// is counted twice or not at all.
func (a *agent) transfer(t *testing.T, transfers int) {
	t.Helper()
	for range transfers {
		n := uint64(len(a.events))
		bytes, requests := ringbuf.TypeTxBytes, ringbuf.TypeTxRequests
		if n/4%2 == 1 {
			bytes, requests = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
		}
		a.push(t,
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1+n), ringbuf.NewEvent(ringbuf.TypeXferTime, 1000+n),
			ringbuf.NewEvent(bytes, 4096+n), ringbuf.NewEvent(requests, 1))
	}
}

func (a *agent) push(t *testing.T, events ...ringbuf.Event) {
	t.Helper()
	if n, err := a.PushBatch(events); err != nil || n != len(events) {
		t.Fatalf("pushed %d of %d events: %v", n, len(events), err)
	}
	a.events = append(a.events, events...)
}

// want returns the series of all events written so far.
func (a *agent) want() otlpfile.Series {
	return otlpfile.WantEvents(ringbuf.V4, a.events, a.Capacity()) // the metrics don't depend on the layout
}

// want returns the totals of several agents.
func want(agents ...*agent) otlpfile.Totals {
	totals := make(otlpfile.Totals)
	for _, a := range agents {
		totals[a.Path()] = a.want()
	}
	return totals
}

// mustEqual ends the test if totals differ.
func mustEqual(t *testing.T, want, got otlpfile.Totals, but ...string) {
	t.Helper()
	if d := otlpfile.Diff(want, got, but...); d != "" {
		t.Fatalf("totals (-want +got):\n%s", d)
	}
}

// rings returns the environment variable with the telemetry directory.
func rings(dir string) string { return "NIXL_TELEMETRY_DIR=" + dir }
