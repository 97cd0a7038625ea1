// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// tick returns a clock that advances by a second each time it is read.
func tick() func() time.Time {
	now := time.Date(2025, 11, 17, 0, 4, 29, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "telemetry")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := session.Open(dir, session.WithName("run_1"),
		session.WithMeterProvider(noop.NewMeterProvider()), // the default is the global one
		session.WithClock(tick()))
	if err != nil {
		log.Print(err) // s still records metrics
	}
	s.AddPromptTokens(ctx, 3)
	packets := []session.Packet{
		{ID: 1, Layer: -1, Operation: "embedding", Device: session.CPU, Duration: 500 * time.Microsecond, Memory: 10 << 20},
		{ID: 2, Layer: 0, Operation: "expert_ffn", Expert: "3", Device: session.IGPU, Duration: 5200 * time.Microsecond, Memory: 128 << 20},
		{
			ID: 3, Layer: 1, Operation: "attention_qkv_proj", Device: session.CPU, DeviceTarget: session.IGPU,
			Duration: 3100 * time.Microsecond, Err: errors.New("iGPU out of memory"), ErrorType: "out_of_memory",
		},
	}
	for _, p := range packets {
		if err := s.Record(ctx, p); err != nil {
			log.Print(err)
		}
	}
	s.AddGeneratedTokens(ctx, 1)
	if err := s.Close(); err != nil {
		log.Print(err)
	}

	csv, err := os.ReadFile(filepath.Join(dir, "run_1.csv"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(csv))
	sum := s.Summary()
	fmt.Printf("%d packets, %d failed, %.2f tokens/s\n", sum.TotalPackets, sum.FailedPackets, sum.TokensPerSecond)
	// Output:
	// timestamp,device,worker_instance,duration_ms,packet_id,layer_idx,operation,success,memory_used_mb,error_message
	// 1763337871.000000,cpu,cpu_embedding,0.500,1,-1,embedding,True,10.00,
	// 1763337872.000000,igpu,igpu_expert_ffn_layer_0,5.200,2,0,expert_ffn,True,128.00,
	// 1763337873.000000,cpu,cpu_attention_layer_1,3.100,3,1,attention_qkv_proj,False,0.00,iGPU out of memory
	// 3 packets, 1 failed, 0.25 tokens/s
}

// This example counts packets by expert, to show the balance of a mixture-of-experts
// model. It creates the attributes of the packets once and reuses them.
func ExampleSession_Record() {
	dir, err := os.MkdirTemp("", "telemetry")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	reader := sdkmetric.NewManualReader() // or a PeriodicReader with an exporter
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s, err := session.Open(dir, session.WithMeterProvider(provider))
	if err != nil {
		log.Print(err)
	}
	defer s.Close()

	ctx := context.Background() // with a sampled span, the metrics get exemplars
	decode := attribute.NewSet(attribute.String("phase", "decode"))
	for _, expert := range []string{"0", "3", "3", "3", "7"} {
		err := s.Record(ctx, session.Packet{
			Layer: 4, Operation: "expert_ffn", Expert: expert, Device: session.IGPU, Duration: time.Millisecond, Attributes: decode,
		})
		if err != nil {
			log.Print(err)
		}
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if m.Name == semconv.ExpertSelections.Name {
			selections, _ := m.Data.(metricdata.Sum[int64])
			for _, p := range selections.DataPoints {
				fmt.Println(p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value)
			}
		}
	}
	// Unordered output:
	// phase=decode,splitinfer.expert=0,splitinfer.layer=4,splitinfer.operation=expert_ffn 1
	// phase=decode,splitinfer.expert=3,splitinfer.layer=4,splitinfer.operation=expert_ffn 3
	// phase=decode,splitinfer.expert=7,splitinfer.layer=4,splitinfer.operation=expert_ffn 1
}

func ExampleAnalyze() {
	report, err := session.Analyze("testdata/upstream/test_session.csv")
	if err != nil {
		log.Fatal(err) // the file doesn't exist, or it isn't a session
	}
	var text strings.Builder
	if _, err := report.WriteTo(&text); err != nil {
		log.Fatal(err)
	}
	_, devices, _ := strings.Cut(text.String(), "\nDevices")
	devices, _, _ = strings.Cut(devices, "\n\n")
	fmt.Println("Devices" + devices)
	for _, f := range report.Failures {
		fmt.Printf("packet %d: %s\n", f.PacketID, f.Error)
	}
	// Output:
	// Devices  packets  of all  time ms  of time  avg ms
	//   igpu   2        40.0%   7.500    85.2%    3.750
	//   cpu    2        40.0%   1.300    14.8%    0.650
	// packet 5: iGPU out of memory
}

func ExampleRecover() {
	dir, err := os.MkdirTemp("", "telemetry")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// A crashed program leaves a CSV without a summary.
	csv, err := os.ReadFile("testdata/upstream/test_session.csv")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "crashed.csv")
	if err := os.WriteFile(path, csv, 0o600); err != nil {
		log.Fatal(err)
	}

	r, err := session.Recover(path, false) // don't overwrite a summary
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Summary.SessionName, r.Summary.TotalPackets, filepath.Base(r.Summary.JSONSummary))
	// Output: crashed 5 crashed.json
}
