// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command rings exports the telemetry of NIXL agents over OTLP without a Collector. It
// reads the rings that agents create in a directory, and passes their totals to its own
// OpenTelemetry pipeline.
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./rings -dir /run/nixl
//
// The default directory is $NIXL_TELEMETRY_DIR, or else /tmp. The program runs until it is
// interrupted. Further environment variables:
//
//	OTEL_METRIC_EXPORT_INTERVAL  time between two exports, in ms
//	NIXL_TELEMETRY_CSV_FILE      file to which every event is appended as a row
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func main() {
	dir := flag.String("dir", "", "directory of the rings (default $NIXL_TELEMETRY_DIR, or /tmp)")
	observe := flag.Bool("observe", false, "leave the events in the rings for another reader")
	flag.Parse()

	var c rings.Config
	if *dir != "" {
		c.Directories = []string{*dir}
	}
	if *observe {
		c.Mode = ringbuf.Observe
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "rings:", err)
		os.Exit(1)
	}
}

// shutdownTime bounds the last export, so that a backend that can't be reached
// doesn't delay the exit for long.
const shutdownTime = 5 * time.Second

// run exports until the context is done.
func run(ctx context.Context, c rings.Config) (err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") == "" {
		return errors.New("no backend: set OTEL_EXPORTER_OTLP_ENDPOINT, for example to http://localhost:4317")
	}
	if os.Getenv(sink.CSVFileEnv) != "" {
		var file *sink.CSV
		file, err = sink.OpenCSVFromEnv()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		c.Sinks = append(c.Sinks, file)
	}
	producer, err := rings.Open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close()) }()
	exporter, err := otlpmetricgrpc.New(ctx) // reads OTEL_EXPORTER_OTLP_…
	if err != nil {
		return err
	}
	provider := metric.NewMeterProvider(metric.WithReader(producer.Reader(exporter)))
	<-ctx.Done()

	last, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := provider.Shutdown(last); err != nil { // drains the rings and exports once more
		return fmt.Errorf("export last metrics: %w", err)
	}
	return nil
}
