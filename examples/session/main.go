// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command session runs a small split-inference pipeline and records it: a CSV row for
// each work packet, a JSON summary at the end, and the splitinfer metrics.
//
//	OTEL_METRICS_EXPORTER=console go run ./session
//
// OpenTelemetry's variables apply. By default, the metrics go to a Collector at
// localhost:4318.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	tokens := flags.Int("tokens", 20, "number of tokens to generate")
	layers := flags.Int("layers", 32, "number of layers of the model")
	if err := flags.Parse(args); err != nil {
		return err
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
	s, err := session.Open(*dir, session.WithMeterProvider(provider))
	if err != nil {
		return errors.Join(err, shutdown())
	}
	p := pipeline{session: s}
	s.AddPromptTokens(ctx, 7)
	for n := 0; n < *tokens && ctx.Err() == nil; n++ {
		p.token(ctx, *layers)
		s.AddGeneratedTokens(ctx, 1)
	}
	// Even after an interrupt, close, show and export the session.
	return errors.Join(ctx.Err(), s.Close(), show(s.Summary().CSVLog, out), shutdown())
}

// show prints the analysis of a session.
func show(csvPath string, out io.Writer) error {
	report, err := session.Analyze(csvPath)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, report)
	return err
}

// pipeline runs a mixture-of-experts model on two devices: attention and experts on the
// iGPU, the rest on the CPU. The model is simulated.
type pipeline struct {
	session *session.Session
	packets int64
}

// token runs the packets of one token.
func (p *pipeline) token(ctx context.Context, layers int) {
	p.do(ctx, session.Packet{Operation: "embedding", Layer: -1, DeviceTarget: session.CPU})
	for layer := range layers {
		p.do(ctx, session.Packet{Operation: "attention_qkv_proj", Layer: layer, DeviceTarget: session.IGPU})
		p.do(ctx, session.Packet{Operation: "router_logits", Layer: layer, DeviceTarget: session.CPU})
		expert := strconv.Itoa(rand.IntN(8))
		p.do(ctx, session.Packet{Operation: "expert_ffn", Layer: layer, Expert: expert, DeviceTarget: session.IGPU})
	}
	p.do(ctx, session.Packet{Operation: "lm_head", Layer: layers, DeviceTarget: session.CPU})
}

// do runs a packet on the requested device or, if that fails, on the CPU.
func (p *pipeline) do(ctx context.Context, packet session.Packet) {
	for _, packet.Device = range []string{packet.DeviceTarget, session.CPU} {
		p.packets++
		packet.ID = p.packets
		start := time.Now()
		packet.Memory, packet.Err = work(packet.Device)
		packet.Duration = time.Since(start)
		// Don't stop inference if the row can't be written.
		if err := p.session.Record(ctx, packet); err != nil {
			log.Print(err)
		}
		if packet.Err == nil {
			return
		}
	}
}

// memoryError is an error whose name the metrics report as error.type.
type memoryError struct{}

func (memoryError) Error() string     { return "iGPU out of memory" }
func (memoryError) ErrorType() string { return "out_of_memory" }

// work takes some time, and sometimes fails on the iGPU.
func work(device string) (memory int64, err error) {
	if device == session.IGPU && rand.IntN(100) == 0 {
		return 0, memoryError{}
	}
	sum := 0.0
	for range 10_000 {
		sum += rand.Float64()
	}
	return int64(sum), nil
}
