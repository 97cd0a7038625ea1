// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// docs/cost.md has these figures.
func TestDefaultMetricsHaveAtMost40PointsPerAgent(t *testing.T) {
	const agents = 8
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	for a := range agents {
		w := ring(t, dir, fmt.Sprintf("decode-%d", a), ringbuf.V4, 4096)
		for kind := ringbuf.TypeMemoryRegistered; kind < ringbuf.TypeEventsDropped; kind++ {
			push(t, w, ringbuf.NewEvent(kind, 4096))
		}
		for range 900 {
			one := write(1<<(10+random.Uint64N(20))+random.Uint64N(1<<20), 30+random.Uint64N(1<<random.Uint64N(20)), 5+random.Uint64N(50))
			if random.IntN(2) > 0 {
				one[2].Type, one[3].Type = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
			}
			push(t, w, one...)
		}
	}
	m := newHarness(t, dir, func(c *Config) { c.Metrics = metadata.DefaultMetricsConfig() }).start().next()
	if n := m.DataPointCount(); n > 40*agents || m.ResourceMetrics().Len() != agents {
		t.Errorf("%d points of %d agents, want 40 or fewer of each of %d", n, m.ResourceMetrics().Len(), agents)
	}
	b, err := new(pmetric.ProtoMarshaler).MarshalMetrics(m)
	must.OK(t, err)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write(b); err != nil {
		t.Fatal(err)
	}
	must.OK(t, zip.Close())
	t.Logf("%d points and %d bytes (%d with gzip) per agent", m.DataPointCount()/agents, len(b)/agents, zipped.Len()/agents)
}
