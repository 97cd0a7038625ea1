// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkPut puts the checkpoint of a busy agent into its page, and writes the page.
func BenchmarkPut(b *testing.B) {
	shape, err := tally.NewShape(tally.Config{})
	must.OK(b, err)
	a := tally.NewAgent(shape)
	for i := range uint64(100_000) {
		d := ringbuf.Type(i & 1)
		batch, err := ringbuf.MakeBatch(ringbuf.V4, []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 5+i%97), ringbuf.NewEvent(ringbuf.TypeXferTime, 100+i%30_011),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+d, 1<<(i%26)*(1+i%89)), ringbuf.NewEvent(ringbuf.TypeTxRequests+d, 1),
		})
		must.OK(b, err)
		a.Add(batch)
	}
	stream := attribute.NewSet(
		attribute.String("service.name", "decode"), attribute.String("service.instance.id", "k8s:0b1c8d3e-6c52-4e0b-9a58-1f0f0a7c2f00/worker/run/nixl/agent-0"),
		attribute.String("k8s.pod.uid", "0b1c8d3e-6c52-4e0b-9a58-1f0f0a7c2f00"), attribute.Int("process.pid", 12345), attribute.String("nixl.agent.name", "agent-0"),
	)
	p, size := empty(), 0
	for b.Loop() {
		p.Put(&Entry{ID: "agent", Name: "agent-0", Mark: Mark{Layout: ringbuf.V4, Dev: 40, Ino: 123456, Capacity: 4096, From: 5, To: 6}, Attributes: AttributesOf(stream), Totals: a.State()})
		size = len(p.Ops()[0].Value)
	}
	b.ReportMetric(float64(size), "B")
}
