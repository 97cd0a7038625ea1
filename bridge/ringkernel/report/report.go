// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package report shows the snapshots of a [ringkernel.Runtime] without a metrics
// backend: as text, once or periodically.
package report

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// Write writes a summary as text, with one line per kernel.
func Write(w io.Writer, s ringkernel.Summary) error {
	if _, err := io.WriteString(w, text(s)); err != nil {
		return fmt.Errorf("write the summary of ring kernels: %w", err)
	}
	return nil
}

func text(s ringkernel.Summary) string {
	if s.Time.IsZero() {
		return "=== Telemetry is disabled ===\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "=== Telemetry @ %d ===\n", s.Time.Unix())
	fmt.Fprintf(&b, "Kernels: %d\n", s.KernelCount)
	fmt.Fprintf(&b, "Messages: %d\n", s.TotalMessages)
	fmt.Fprintf(&b, "Throughput: %.1f msg/s\n", s.AggregateThroughput)
	fmt.Fprintf(&b, "Errors: %d\n", s.TotalErrors)
	fmt.Fprintf(&b, "Dropped: %d\n", s.TotalDropped)
	if s.GPUUtilization != nil {
		fmt.Fprintf(&b, "GPU: %.1f%%\n", 100**s.GPUUtilization)
	}
	for _, t := range s.Kernels {
		fmt.Fprintf(&b, "  %s: %v, %d processed, %.1f msg/s, latency %v avg, %v min, %v max, %d errors\n",
			t.KernelID, t.State, t.MessagesProcessed, t.Throughput(),
			t.AverageLatency(), t.MinLatency, t.MaxLatency, t.Errors)
	}
	return b.String()
}

// Print writes a summary, preceded by an empty line, at each interval until the
// context is done. It then returns nil. It returns an error if the interval isn't
// positive or if a write fails. With a nil Runtime, it only waits for the context.
//
//	go report.Print(ctx, os.Stdout, rt, 5*time.Second)
func Print(ctx context.Context, w io.Writer, rt *ringkernel.Runtime, every time.Duration) error {
	if every <= 0 {
		return fmt.Errorf("print a summary every %v: the interval must be more than 0", every)
	}
	if rt == nil {
		<-ctx.Done()
		return nil
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if ctx.Err() != nil {
			return nil // both were ready
		}
		if _, err := io.WriteString(w, "\n"+text(rt.Summary())); err != nil {
			return fmt.Errorf("print the summary of ring kernels: %w", err)
		}
	}
}
