// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The kernel doesn't report every agent.
func TestAgentUpIsReportedIfTheKernelReportsIt(t *testing.T) {
	shape, err := tally.NewShape(tally.Config{})
	must.OK(t, err)
	cfg := createDefaultConfig()
	mb := metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, receivertest.NewNopSettings(metadata.Type))
	b := newBuilder(cfg, mb, "host")
	for want, up := range map[int64]engine.Up{1: engine.UpYes, 0: engine.UpNo, -1: engine.UpUnknown} {
		agent := engine.Snapshot{Layout: ringbuf.V4, Start: time.Now(), Up: up, Totals: tally.NewAgent(shape).Snapshot(nil)}
		m := b.build(time.Now(), []engine.Snapshot{agent})
		got := int64(-1)
		for _, m := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "nixl.agent.up" {
				got = m.Sum().DataPoints().At(0).IntValue()
			}
		}
		if got != want {
			t.Errorf("nixl.agent.up is %d, want %d (-1: absent)", got, want)
		}
	}
}
