// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command agent is a small Go agent that moves blocks of memory, as a NIXL agent
// moves a KV cache, and reports what it does through bridge/agent.
//
// A backend, here a goroutine that copies memory, takes transfers from a queue.
// The agent registers memory with it, writes blocks to it and reads blocks
// back. Some transfers name a block that doesn't exist.
//
// The agent reports in one of two ways, and to a CSV file if you want:
//
//	go run ./agent -ring /run/nixl      # for a Collector that reads rings
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./agent
//	NIXL_TELEMETRY_CSV_FILE=events.csv go run ./agent
//
// With neither, it says that it reports to no backend. It runs until it is
// interrupted, and then prints what it did.
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

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
)

// settings are what the flags set.
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
	flag.StringVar(&s.ring, "ring", "", "directory to make the agent's ring in; none if empty")
	flag.DurationVar(&s.duration, "duration", 0, "how long to run; 0 until interrupted")
	flag.IntVar(&s.rate, "rate", 1000, "transfers a second")
	flag.IntVar(&s.blocks, "blocks", 64, "blocks of memory")
	flag.IntVar(&s.block, "block", 64<<10, "bytes of a block")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// run moves blocks until the context is done or the duration over, and then
// exports the rest of the telemetry.
func run(ctx context.Context, s settings, w io.Writer) (err error) {
	if s.rate <= 0 || s.blocks <= 0 || s.block <= 0 || s.duration < 0 {
		return errors.New("-rate, -blocks and -block must be more than 0, and -duration not less")
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	var opts []agent.Option
	switch {
	case s.ring != "":
		opts = append(opts, agent.WithRing(agent.Ring{Dir: s.ring}))
	case os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != "":
		producer := agent.NewProducer()
		var shutdown func() error
		if shutdown, err = export(ctx, s.name, producer); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shutdown()) }()
		opts = append(opts, agent.WithProducer(producer), agent.WithNameInResource())
	default:
		fmt.Fprintln(w, "reporting to no backend: pass -ring or set OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if os.Getenv(sink.CSVFileEnv) != "" {
		var file *sink.CSV
		if file, err = sink.OpenCSVFromEnv(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		opts = append(opts, agent.WithSinks(file))
	}
	var a *agent.Agent // nil, which does nothing, if it has nowhere to report to
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

// shutdownTime bounds the last export, so that a backend that can't be reached
// doesn't delay the exit for long.
const shutdownTime = 5 * time.Second

// export exports the producer's metrics over OTLP. The resource is the one that the
// Collector gives an agent with a ring. It replaces that of otlpmetric, which also
// describes the process and the SDK.
func export(ctx context.Context, name string, producer *agent.Producer) (shutdown func() error, err error) {
	attributes, err := agent.ResourceAttributes(name, "")
	if err != nil {
		return nil, err
	}
	p, err := otlpmetric.New(ctx, otlpmetric.WithProducers(producer),
		otlpmetric.WithProviderOptions(metric.WithResource(resource.NewSchemaless(attributes...))))
	if err != nil {
		return nil, err
	}
	return func() error {
		// Not ctx: it is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			return fmt.Errorf("export the last metrics: %w", err)
		}
		return nil
	}, nil
}
