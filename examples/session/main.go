// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command session runs a small split-inference pipeline and records it: a CSV row for
// each work packet, a JSON summary at the end, and the splitinfer metrics over OTLP.
//
//	go run ./session
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 go run ./session -tokens 200
//
// Without the variable, the metrics go to a Collector at localhost:4318. All of
// OpenTelemetry's variables apply; OTEL_METRICS_EXPORTER=none exports nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/metric"

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

// run records one session and prints its analysis.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("session", flag.ContinueOnError)
	dir := flags.String("dir", session.DefaultDir, "`directory` of the session's files")
	name := flags.String("name", "", "`name` of the session (default: the local time)")
	var m model
	flags.IntVar(&m.prompt, "prompt", 7, "number of prompt tokens")
	flags.IntVar(&m.tokens, "tokens", 20, "number of tokens to generate")
	flags.IntVar(&m.layers, "layers", 32, "number of layers of the model")
	flags.IntVar(&m.experts, "experts", 2, "number of experts that the router selects at each layer, at most 8")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if m.experts < 0 || m.experts > expertsPerLayer {
		return fmt.Errorf("-experts %d: must be from 0 to %d", m.experts, expertsPerLayer)
	}

	reader, err := autoexport.NewMetricReader(ctx) // reads OTEL_METRICS_EXPORTER and OTEL_EXPORTER_OTLP_…
	if err != nil {
		return err
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	shutdown := func() error {
		// Don't use the outer ctx, which is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return provider.Shutdown(ctx)
	}
	s, err := session.Open(*dir, session.WithName(*name), session.WithMeterProvider(provider))
	if err != nil {
		return errors.Join(err, shutdown())
	}
	err = newPipeline(m, s).generate(ctx)
	// Even after an error, close, show and export the session.
	return errors.Join(err, s.Close(), show(s.Summary().CSVLog, out), shutdown())
}

// show prints the analysis of a session.
func show(csvPath string, out io.Writer) error {
	report, err := session.Analyze(csvPath)
	if err != nil {
		return err
	}
	_, err = report.WriteTo(out)
	return err
}
