// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A program that exports rings itself exports the same metrics as the Collector,
// including the rings' health.
func TestRingsExportTheSameMetricsAsTheReceiver(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		t.Run(layout.String(), func(t *testing.T) {
			ops := stream(8, 500)
			if layout >= ringbuf.V4 {
				ops = append(ops, dropped(7))
			}
			if layout.Named() {
				ops = append(ops, ownEvents()...)
			}
			c := startReceiver(t, ringOf(t, layout, ops), withEvents)
			c.stop()

			bridge := throughRings(rings.Config{})(t, ringOf(t, layout, ops))
			equal(t, normalize(t, only(t, c.all())), normalize(t, bridge()))
		})
	}
}

// ringOf returns a directory with an agent's ring that holds the events of all
// operations.
func ringOf(t *testing.T, layout ringbuf.Layout, ops []operation) string {
	t.Helper()
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, agentName), layout, capacity)
	must.OK(t, err)
	for _, op := range ops {
		if n, err := w.PushBatch(op.events); n < len(op.events) {
			t.Fatalf("only %d events fit: %v", n, err)
		}
	}
	must.OK(t, w.Close())
	return dir
}
