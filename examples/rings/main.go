// Command rings ships the telemetry of NIXL agents over OTLP gRPC, without a
// Collector: it reads the rings that agents write into a directory, and gives
// their totals to its own OpenTelemetry pipeline.
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./rings -dir /run/nixl
//
// The directory is $NIXL_TELEMETRY_DIR unless it is given, and the endpoint
// localhost:4317; it says at start where it ships to. OTEL_METRIC_EXPORT_INTERVAL,
// in milliseconds, says how often to ship. With NIXL_TELEMETRY_CSV_FILE set,
// every event is also a row of that file. It runs until it is interrupted.
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
	observe := flag.Bool("observe", false, "only look at the rings, beside another reader")
	flag.Parse()

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	log.Info("shipping over OTLP gRPC", "endpoint", endpoint())
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

// endpoint is where the exporter ships to. Nobody may be there, and it would be
// told only at the end.
func endpoint() string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
		"localhost:4317, as OTEL_EXPORTER_OTLP_ENDPOINT isn't set")
}

// shutdownTime bounds the last export, so that a backend that is gone doesn't
// keep the program.
const shutdownTime = 5 * time.Second

// run ships until the context is done.
func run(ctx context.Context, opts []rings.Option) (err error) {
	if os.Getenv(sink.CSVFile) != "" {
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
	err = provider.Shutdown(last) // drains the rings, and ships what came last
	if err != nil {
		err = fmt.Errorf("ship the last metrics: %w", err)
	}
	return errors.Join(err, producer.Close())
}
