// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command bridge is the program in the documentation of package bridge: an agent and a ring
// kernel that report over OTLP.
package main

import (
	"context"
	"errors"
	"log"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	exporter, err := otlpmetricgrpc.New(ctx) // reads OTEL_EXPORTER_OTLP_ENDPOINT and similar variables
	if err != nil {
		return err
	}
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter)))
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }() // exports the last values

	a, err := agent.New("decode-0", agent.WithMeterProvider(provider))
	if err != nil {
		return err
	}
	defer a.Close()
	a.MemoryRegistered(ctx, 1<<30)
	a.Transfer(ctx, agent.Transmit, 64<<20, 50*time.Microsecond, 3*time.Millisecond)

	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	defer rt.Close()
	k := rt.Register("resize")
	k.SetState(ringkernel.StateActive)
	in, out := make([]byte, 1<<20), make([]byte, 1<<20)
	for range 2 {
		k.Received(ctx)
		start := time.Now()
		copy(out, in) // the kernel's work
		k.Processed(ctx, time.Since(start))
		k.Sent(ctx)
	}
	k.SetState(ringkernel.StateTerminated)
	return nil
}
