// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command rings exports the metrics of the NIXL agents on this host, without a Collector.
//
//	go run ./rings -dir /run/nixl
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./rings -dir /run/nixl
//
// Without OTEL_EXPORTER_OTLP_ENDPOINT, it prints the metrics as JSON. OpenTelemetry's and
// NIXL's variables apply. With NIXL_TELEMETRY_CSV_FILE, the program also appends each event
// to a CSV file. It drains the rings, so only one such program, or Collector, can run;
// -observe leaves the events for another reader.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
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
	exporter, err := newExporter(ctx)
	if err == nil {
		err = run(ctx, exporter, c)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func newExporter(ctx context.Context) (metric.Exporter, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return stdoutmetric.New()
	}
	return otlpmetricgrpc.New(ctx)
}

// run exports the rings' metrics until the context is done, and then once more.
func run(ctx context.Context, exporter metric.Exporter, c rings.Config) (result error) {
	if os.Getenv(sink.CSVFileEnv) != "" {
		file, err := sink.OpenCSVFromEnv()
		if err != nil {
			return err
		}
		defer func() { result = errors.Join(result, file.Close()) }()
		c.Sinks = append(c.Sinks, file)
	}
	producer, err := rings.Open(c)
	if err != nil {
		return err
	}
	provider := metric.NewMeterProvider(metric.WithReader(producer.Reader(exporter)))
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(provider.Shutdown(last), producer.Close())
}
