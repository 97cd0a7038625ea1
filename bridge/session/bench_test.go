// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// layerOperations lists the operations of a pipeline at each layer.
var layerOperations = []struct{ operation, device string }{
	{"attention_layernorm", IGPU},
	{"attention_qkv_proj", IGPU},
	{"router_logits", IGPU},
	{"expert_selection", CPU},
	{"expert_ffn", IGPU},
}

// packets returns the packets of one token of a model with 32 layers.
func packets() []Packet {
	var all []Packet
	for layer := range 32 {
		for _, op := range layerOperations {
			all = append(all, Packet{
				ID: int64(len(all) + 1), Layer: layer, Operation: op.operation, Device: op.device,
				Duration: 1056 * time.Microsecond, Memory: 20 << 20,
			})
		}
	}
	return all
}

// detailed returns the same packets with all optional attributes.
func detailed() []Packet {
	all := packets()
	decode := attribute.NewSet(attribute.String("phase", "decode"))
	for i := range all {
		all[i].Worker = "worker-" + strconv.Itoa(i%4)
		all[i].Attributes = decode
		if isExpert(all[i].Operation) {
			all[i].Expert = strconv.Itoa(i % 8)
		}
	}
	return all
}

// BenchmarkRecord measures Record: row, totals and metrics. For comparison, it
// measures the SDK's instruments and a plain write.
func BenchmarkRecord(b *testing.B) {
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	bench := func(name string, provider metric.MeterProvider, all []Packet, opts ...Option) {
		b.Run(name, func(b *testing.B) {
			s := openBench(b, provider, opts...)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := s.Record(b.Context(), all[i%len(all)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	failing := packets()
	for i := range failing {
		failing[i].Err = errors.New("iGPU out of memory")
		failing[i].DeviceTarget = "npu"
	}
	bench("metrics", sdk, packets())
	bench("metrics/detailed", sdk, detailed())
	bench("metrics/failed-and-fallback", sdk, failing)
	// With this clock, packets never form a burst, so each row is a write.
	bench("metrics/row-by-row", sdk, packets(), WithClock(ticking(time.Millisecond)))
	bench("no-metrics", noop.NewMeterProvider(), packets())
	b.Run("write", func(b *testing.B) {
		f, err := createFile(filepath.Join(b.TempDir(), "rows"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		row := []byte("1763318069.868178,igpu,igpu_attention_layer_0,0.057,2,0,attention_layernorm,True,20.00,\n")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f.Write(row); err != nil {
				b.Fatal(err)
			}
		}
	})

	ctx := context.Background()
	in, err := newInstruments(sdk)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sdk/Int64Counter.Add", func(b *testing.B) {
		opts := addTo(attribute.String(semconv.DeviceName, CPU), attribute.String(semconv.Worker, "cpu_router"))
		b.ReportAllocs()
		for b.Loop() {
			in.packets.Add(ctx, 1, opts...)
		}
	})
	b.Run("sdk/Float64Histogram.Record", func(b *testing.B) {
		opts := recordIn(attribute.String(semconv.DeviceName, CPU), attribute.String(semconv.Operation, "expert_ffn"))
		b.ReportAllocs()
		for b.Loop() {
			in.duration.Record(ctx, 0.001056, opts...)
		}
	})
}

// BenchmarkRecordConcurrent measures Record with several goroutines.
func BenchmarkRecordConcurrent(b *testing.B) {
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	s := openBench(b, sdk)
	all := packets()
	var first atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(first.Add(7)); pb.Next(); i++ {
			if err := s.Record(b.Context(), all[i%len(all)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func openBench(b *testing.B, provider metric.MeterProvider, opts ...Option) *Session {
	b.Helper()
	s, err := Open(b.TempDir(), append(opts, WithMeterProvider(provider))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}
