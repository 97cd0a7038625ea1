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
	for _, p := range packets {
		if err := s.Record(ctx, p); err != nil {
			log.Print(err)
		}
	}
	s.AddGeneratedTokens(ctx, 1)
	if err := s.Close(); err != nil {
		log.Print(err)
	}

	sum := s.Summary()
	fmt.Printf("%s: %d packets, %d failed, %d tokens\n", filepath.Base(sum.CSVLog), sum.TotalPackets, sum.FailedPackets, sum.TotalTokens)
	// Output:
	// run_1.csv: 3 packets, 1 failed, 4 tokens
}
