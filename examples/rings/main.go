// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command rings exports the telemetry of NIXL agents over OTLP without a Collector. It
// reads the rings that agents create in a directory, and passes their totals to its own
// OpenTelemetry pipeline.
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./rings -dir /run/nixl
//
// The default directory is $NIXL_TELEMETRY_DIR, or else /tmp. The default endpoint is on
// this host. The program logs the protocol and the endpoint when it starts, and runs
// until it is interrupted. Further environment variables:
//
//	OTEL_EXPORTER_OTLP_PROTOCOL  grpc (default) or http/protobuf
//	OTEL_METRIC_EXPORT_INTERVAL  time between two exports, in ms
//	NIXL_TELEMETRY_CSV_FILE      file to which every event is appended as a row
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func main() {
	dir := flag.String("dir", "", "directory of the rings (default $NIXL_TELEMETRY_DIR, or /tmp)")
	observe := flag.Bool("observe", false, "leave the events in the rings for another reader")
	flag.Parse()

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	protocol, endpoint := target()
	log.Info("exporting over OTLP", "protocol", protocol, "endpoint", endpoint)
	opts := []rings.Option{rings.WithLogger(log)}
	if *dir != "" {
		opts = append(opts, rings.WithDirectories(*dir))
	}
	if *observe {
		opts = append(opts, rings.WithMode(ringbuf.Observe))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts); err != nil {
		fmt.Fprintln(os.Stderr, "rings:", err)
		os.Exit(1)
	}
}

// target returns the protocol and the endpoint of the exporter. They are logged because
// the exporter reports an unreachable backend only at the first export, which may be a
// minute later.
func target() (protocol, endpoint string) {
	protocol = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc")
	local := "localhost:4317"
	if protocol == "http/protobuf" {
		local = "localhost:4318"
	}
	endpoint = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
		local+" (OTEL_EXPORTER_OTLP_ENDPOINT isn't set)")
	return protocol, endpoint
}

// shutdownTime bounds the last export, so that a backend that can't be reached
// doesn't delay the exit for long.
const shutdownTime = 5 * time.Second

// run exports until the context is done.
func run(ctx context.Context, opts []rings.Option) (err error) {
	if os.Getenv(sink.CSVFileEnv) != "" {
		var file *sink.CSV
		file, err = sink.OpenCSVFromEnv()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		opts = append(opts, rings.WithSinks(file))
	}
	producer, err := rings.New(opts...)
	if err != nil {
		return err
	}
	provider, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("rings-example"), otlpmetric.WithProducers(producer))
	if err != nil {
		return err
	}
	if err := producer.Start(); err != nil {
		return errors.Join(err, provider.Shutdown(ctx))
	}
	<-ctx.Done()

	last, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err = provider.Shutdown(last) // drains the rings and exports once more
	if err != nil {
		err = fmt.Errorf("export last metrics: %w", err)
	}
	return errors.Join(err, producer.Close())
}
