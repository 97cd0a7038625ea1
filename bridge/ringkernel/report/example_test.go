// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel/report"
)

// This example prints a summary every five seconds until the context is canceled.
func ExamplePrint() {
	rt := ringkernel.NewRuntime()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- report.Print(ctx, os.Stdout, rt, 5*time.Second) }()
	cancel() // at the end of the program
	fmt.Println(<-done)
	// Output: <nil>
}

func ExampleWrite() {
	moment := time.Date(2025, time.January, 15, 14, 30, 0, 0, time.UTC)
	rt := ringkernel.NewRuntime(ringkernel.WithClock(func() time.Time { return moment }))
	k := rt.Register("worker")
	k.Processed(context.Background(), time.Millisecond)
	moment = moment.Add(2 * time.Second)
	if err := report.Write(os.Stdout, rt.Summary()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// === Telemetry @ 1736951402 ===
	// Kernels: 1
	// Messages: 1
	// Throughput: 0.5 msg/s
	// Errors: 0
	// Dropped: 0
	//   worker: created, 1 processed, 0.5 msg/s, latency 1ms avg, 1ms p50, 1ms p99, 1ms max, 0 errors
}

// This handler is part of the program's debug server.
func ExampleHandler() { //nolint:testableexamples // it needs a server
	rt := ringkernel.NewRuntime()
	http.Handle("/debug/ringkernels", report.Handler(rt))
}
