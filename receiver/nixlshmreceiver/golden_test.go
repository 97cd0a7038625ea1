// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"flag"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// go -C receiver/nixlshmreceiver test -run Golden -update .
var update = flag.Bool("update", false, "rewrite the golden files")

// clock is a clock that only moves when a test moves it.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.nanos.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

func everything(c *Config) {
	c.Histograms.Size = tally.HistogramConfig{Kind: tally.Exponential}
	c.Histograms.Throughput = tally.HistogramConfig{Kind: tally.Exponential}
	c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
	c.ResourceAttributes.NixlTelemetryPath.Enabled = true
}

// The rings were written by the code of NIXL's releases. TestEveryRingIsReportedAsItsJSONStates
// has all of them.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		ring, file string
		change     func(*Config)
	}{
		{"0.6.0/alltypes_cap64", "", nil},
		{"v1.4.0/alltypes_cap64", "", nil},
		{"v1.1.0/unknown_enum_cap8", "", nil},
		{"real-agent/v1.4.0_posix_200xfer", "everything", everything},
	} {
		file := strings.ReplaceAll(c.ring, "/", "_")
		if c.file != "" {
			file += "_" + c.file
		}
		t.Run(file, func(t *testing.T) {
			checkGolden(t, file, collectOnce(t, ringtest.Find(t, c.ring), c.change))
		})
	}
}

// collectOnce returns what the receiver exports of a ring at shutdown, ten seconds
// after it opened the ring.
func collectOnce(t *testing.T, c ringtest.Case, change func(*Config)) pmetric.Metrics {
	t.Helper()
	path := ringtest.Copy(t, c)
	h := newHarness(t, filepath.Dir(path), func(cfg *Config) {
		if change != nil {
			change(cfg)
		}
	})
	opened, collected := newClock(), newClock()
	collected.pass(10 * time.Second)
	h.on.now = collected.now
	h.on.adapt = func(c *engine.Config) { c.Now = opened.now }
	h.start()
	return h.shutdown()
}

// elsewhere are the attributes that depend on the temporary directory.
var elsewhere = []string{semconv.ServiceInstanceID, semconv.TelemetryPath}

// checkGolden compares a batch with a golden file, or rewrites the file.
func checkGolden(t *testing.T, name string, got pmetric.Metrics) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".yaml")
	if *update {
		for _, rm := range got.ResourceMetrics().All() {
			for _, key := range elsewhere {
				if v, ok := rm.Resource().Attributes().Get(key); ok {
					v.SetStr("depends on the directory")
				}
			}
		}
		must.OK(t, golden.WriteMetricsToFile(file, got, golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(file)
	must.OK(t, err)
	must.OK(t, pmetrictest.CompareMetrics(want, got,
		pmetrictest.IgnoreResourceAttributeValue(elsewhere[0]), pmetrictest.IgnoreResourceAttributeValue(elsewhere[1]),
		pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
}
