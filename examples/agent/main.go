// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command agent is a small Go agent that moves blocks of memory, as a NIXL agent
// moves a KV cache, and reports its telemetry through bridge/agent.
//
// The backend is a goroutine that takes transfers from a queue and copies memory. The
// agent registers memory, writes blocks to the backend and reads blocks back. Some
// transfers name a block that doesn't exist.
//
// The agent reports through a ring, over OTLP, or to a CSV file:
//
//	go run ./agent -ring /run/nixl      # for a Collector that reads rings
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./agent
//	NIXL_TELEMETRY_CSV_FILE=events.csv go run ./agent
//
// Without any of these, the agent prints a warning. It runs until it is interrupted and
// then prints a summary.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// settings holds the values of the flags.
type settings struct {
	name     string
	ring     string        // directory; empty for no ring
	duration time.Duration // 0 until interrupted
	rate     int           // transfers/s
	blocks   int
	block    int // bytes
}

func main() {
	var s settings
	flag.StringVar(&s.name, "name", "go-agent", "the agent's name")
	flag.StringVar(&s.ring, "ring", "", "directory for the agent's ring; no ring if empty")
	flag.DurationVar(&s.duration, "duration", 0, "how long to run; 0 to run until interrupted")
	flag.IntVar(&s.rate, "rate", 1000, "transfers per second")
	flag.IntVar(&s.blocks, "blocks", 64, "number of memory blocks")
	flag.IntVar(&s.block, "block", 64<<10, "size of a block in bytes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// run transfers blocks until the context is done or the duration is over, and then
// exports the last telemetry.
func run(ctx context.Context, s settings, w io.Writer) (err error) {
	if s.rate <= 0 || s.blocks <= 0 || s.block <= 0 || s.duration < 0 {
		return errors.New("-rate, -blocks and -block must be more than 0, and -duration must not be negative")
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	var opts []agent.Option
	switch {
	case s.ring != "":
		opts = append(opts, agent.WithRing(s.ring))
	case os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != "":
		var provider *metric.MeterProvider
		if provider, err = newProvider(ctx, s.name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shutdown(provider)) }()
		opts = append(opts, agent.WithMeterProvider(provider), agent.WithNameInResource())
	default:
		fmt.Fprintln(w, "no backend: pass -ring or set OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if os.Getenv(sink.CSVFileEnv) != "" {
		var file *sink.CSV
		if file, err = sink.OpenCSVFromEnv(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		opts = append(opts, agent.WithSinks(file))
	}
	var a *agent.Agent // nil without options; a nil Agent does nothing
	if len(opts) > 0 {
		if a, err = agent.New(s.name, opts...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.Close()) }()
	}
	done := move(ctx, a, s)
	fmt.Fprintf(w, "%d writes, %d reads, %d bytes, %d not found\n", done.writes, done.reads, done.bytes, done.missing)
	return nil
}

// newProvider returns a MeterProvider that exports over OTLP. The exporter and the reader
// read the environment variables OTEL_EXPORTER_OTLP_… and OTEL_METRIC_EXPORT_INTERVAL.
// The resource is the one that the Collector reports for an agent with a ring.
func newProvider(ctx context.Context, name string) (*metric.MeterProvider, error) {
	attributes, err := agent.ResourceAttributes(name, "")
	if err != nil {
		return nil, err
	}
	exporter, err := otlpmetricgrpc.New(ctx)
	if err != nil {
		return nil, err
	}
	return metric.NewMeterProvider(
		metric.WithReader(metric.NewPeriodicReader(exporter)),
		metric.WithResource(resource.NewWithAttributes(semconv.SchemaURL, attributes...))), nil
}

// shutdownTime bounds the last export, so that a backend that can't be reached
// doesn't delay the exit for long.
const shutdownTime = 5 * time.Second

// shutdown exports once more. It doesn't use the program's context, which is done when
// the program is interrupted.
func shutdown(provider *metric.MeterProvider) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("export last metrics: %w", err)
	}
	return nil
}
