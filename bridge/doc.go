// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package bridge documents the packages below it, with which Go programs report the metrics of
// this project themselves, without a Collector on the host:
//
//   - [github.com/nixl-otel/nixl-otel/bridge/agent]: programs that move data as NIXL agents do
//   - [github.com/nixl-otel/nixl-otel/bridge/ringkernel]: runtimes of ring kernels
//   - [github.com/nixl-otel/nixl-otel/bridge/session]: runs of split inference
//   - [github.com/nixl-otel/nixl-otel/bridge/rings]: export of the rings of NIXL agents
//   - [github.com/nixl-otel/nixl-otel/bridge/sink]: custom event handlers
//   - github.com/nixl-otel/nixl-otel/bridge/gpu, a module of its own: NVIDIA GPUs
//
// Each package reports through a MeterProvider of the program, with any exporter. This program
// has an agent and a ring kernel, and exports over OTLP:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"log"
//		"time"
//
//		"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
//		"go.opentelemetry.io/otel/sdk/metric"
//
//		"github.com/nixl-otel/nixl-otel/bridge/agent"
//		"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
//	)
//
//	func main() {
//		if err := run(context.Background()); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	func run(ctx context.Context) (err error) {
//		exporter, err := otlpmetricgrpc.New(ctx) // reads OTEL_EXPORTER_OTLP_ENDPOINT and similar variables
//		if err != nil {
//			return err
//		}
//		provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter)))
//		defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }() // exports the last values
//
//		a, err := agent.New("decode-0", agent.WithMeterProvider(provider))
//		if err != nil {
//			return err
//		}
//		defer a.Close()
//		a.MemoryRegistered(ctx, 1<<30)
//		a.Transfer(ctx, agent.Transmit, 64<<20, 50*time.Microsecond, 3*time.Millisecond)
//
//		rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
//		defer rt.Close()
//		k := rt.Register("resize")
//		k.SetState(ringkernel.StateActive)
//		in, out := make([]byte, 1<<20), make([]byte, 1<<20)
//		for range 2 {
//			k.Received(ctx)
//			start := time.Now()
//			copy(out, in) // the kernel's work
//			k.Processed(ctx, time.Since(start))
//			k.Sent(ctx)
//		}
//		k.SetState(ringkernel.StateTerminated)
//		return nil
//	}
//
// A closed agent, runtime or session keeps its final values until the MeterProvider is shut down, so
// everything is exported once, in any order of Close and Shutdown, even if the program panics, or lives
// for less than an export interval. os.Exit, log.Fatal and signals skip deferred calls, and with them
// this export: handle SIGTERM with [os/signal.NotifyContext], as the examples in the repository do.
//
// None of the packages requires gRPC; only the exporter does.
package bridge
