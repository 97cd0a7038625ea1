// The command session runs a small split-inference pipeline and records it: a
// CSV row for each work packet while it runs, a JSON summary at the end, and
// the splitinfer metrics over OTLP meanwhile.
//
//	go run ./examples/session
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./examples/session -tokens 200
//
// Without an endpoint the metrics go nowhere. All of OpenTelemetry's
// OTEL_EXPORTER_OTLP_* variables hold.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "session:", err)
		os.Exit(1)
	}
}

// run records one session and prints what it amounts to.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("session", flag.ContinueOnError)
	dir := flags.String("dir", session.DefaultDir, "`directory` of the session's files")
	name := flags.String("name", "", "`name` of the session (default: its local time)")
	var m model
	flags.IntVar(&m.prompt, "prompt", 7, "tokens of the prompt")
	flags.IntVar(&m.tokens, "tokens", 20, "tokens to generate")
	flags.IntVar(&m.layers, "layers", 32, "layers of the model")
	flags.IntVar(&m.experts, "experts", 2, "experts that the router picks at each layer, at most 8")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if m.experts < 0 || m.experts > expertsPerLayer {
		return fmt.Errorf("-experts %d: must be from 0 to %d", m.experts, expertsPerLayer)
	}

	provider, shutdown, err := metrics(ctx)
	if err != nil {
		return err
	}
	s, err := session.Open(*dir, session.WithName(*name), session.WithMeterProvider(provider))
	if err != nil {
		return errors.Join(err, shutdown())
	}
	err = newPipeline(m, s).generate(ctx)
	// Whatever came of that, the session is closed, shown and shipped.
	return errors.Join(err, s.Close(), show(s.Summary().CSVLog, out), shutdown())
}

// show prints what a session amounts to.
func show(csvPath string, out io.Writer) error {
	report, err := session.Analyze(csvPath)
	if err != nil {
		return err
	}
	_, err = report.WriteTo(out)
	return err
}

// metrics is a MeterProvider that ships over OTLP where an endpoint is given,
// and one that does nothing where not.
func metrics(ctx context.Context) (provider metric.MeterProvider, shutdown func() error, err error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" {
		return noop.NewMeterProvider(), func() error { return nil }, nil
	}
	exporter, err := otlpmetricgrpc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("export metrics to %s: %w", endpoint, err)
	}
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	shutdown = func() error {
		// Not ctx, which may be over already when the last export is due.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := sdk.Shutdown(ctx); err != nil {
			return fmt.Errorf("export metrics to %s: %w", endpoint, err)
		}
		return nil
	}
	return sdk, shutdown, nil
}
