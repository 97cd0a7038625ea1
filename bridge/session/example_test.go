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
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "telemetry")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := session.Open(dir, session.WithName("run_1"),
		session.WithMeterProvider(noop.NewMeterProvider())) // the default is the global one
	if err != nil {
		log.Print(err) // s still records metrics
	}
	s.AddPromptTokens(ctx, 3)
	packets := []session.Packet{
		{ID: 1, Layer: -1, Operation: "embedding", Device: session.CPU, Duration: 500 * time.Microsecond, Memory: 10 << 20},
		{ID: 2, Layer: 0, Operation: "expert_ffn", Expert: "3", Device: session.IGPU, Duration: 5200 * time.Microsecond, Memory: 128 << 20},
		{
			ID: 3, Layer: 1, Operation: "attention_qkv_proj", Device: session.CPU, DeviceTarget: session.IGPU,
			Duration: 3100 * time.Microsecond, Err: errors.New("iGPU out of memory"),
		},
	}
	for i, p := range packets {
		p.End = time.Unix(1763337871+int64(i), 0) // now by default
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
	fmt.Printf("%d packets, %d failed, %d tokens\n", sum.TotalPackets, sum.FailedPackets, sum.TotalTokens)
	// Output:
	// timestamp,device,worker_instance,duration_ms,packet_id,layer_idx,operation,success,memory_used_mb,error_message
	// 1763337871.000000,cpu,cpu_embedding,0.500,1,-1,embedding,True,10.00,
	// 1763337872.000000,igpu,igpu_expert_ffn_layer_0,5.200,2,0,expert_ffn,True,128.00,
	// 1763337873.000000,cpu,cpu_attention_layer_1,3.100,3,1,attention_qkv_proj,False,0.00,iGPU out of memory
	// 3 packets, 1 failed, 4 tokens
}
