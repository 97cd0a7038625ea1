// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command agent copies blocks of memory, and reports that through bridge/agent as a NIXL
// agent reports its transfers.
//
//	OTEL_METRICS_EXPORTER=console go run ./agent -duration 5s
//	go run ./agent -ring /tmp   # in another terminal: nixlring top /tmp
//
// OpenTelemetry's variables apply. By default, the program exports to a Collector at
// localhost:4318. With -ring, a Collector or nixlring reads the ring instead. With
// NIXL_TELEMETRY_CSV_FILE, it also appends each event to a CSV file.
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
	"syscall"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/semconv"
)

const name = "go-agent"

func main() {
	ring := flag.String("ring", "", "`directory` for the agent's ring, instead of OTLP")
	duration := flag.Duration("duration", time.Hour, "how long to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	var reader metric.Reader
	var err error
	if *ring == "" {
		reader, err = autoexport.NewMetricReader(ctx)
	}
	if err == nil {
		err = run(ctx, reader, *ring, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run moves blocks until the context is done. Without a reader, it reports through a ring.
func run(ctx context.Context, reader metric.Reader, ring string, w io.Writer) (result error) {
	opts := []agent.Option{agent.WithRing(ring)}
	if reader != nil {
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		defer func() {
			last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			result = errors.Join(result, provider.Shutdown(last))
		}()
		opts = []agent.Option{agent.WithMeterProvider(provider)}
	}
	if os.Getenv(sink.CSVFileEnv) != "" {
		file, err := sink.OpenCSVFromEnv()
		if err != nil {
			return err
		}
		defer func() { result = errors.Join(result, file.Close()) }()
		opts = append(opts, agent.WithSinks(file))
	}
	a, err := agent.New(name, opts...) // a nil Agent would turn telemetry off
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, a.Close()) }()
	writes, missing := move(ctx, a)
	_, err = fmt.Fprintf(w, "%d writes, %d not found\n", writes, missing)
	return err
}

// move copies blocks until the context is done. One in 100 doesn't exist.
func move(ctx context.Context, a *agent.Agent) (writes, missing int) {
	const blocks, size = 64, 64 << 10
	from, to := make([]byte, blocks*size), make([]byte, blocks*size)
	a.MemoryRegistered(ctx, blocks*size)
	defer a.MemoryDeregistered(ctx, blocks*size)
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return writes, missing
		case <-ticks.C:
		}
		start := time.Now()
		post := time.Since(start)
		if i := rand.IntN(blocks); rand.IntN(100) > 0 {
			copy(to[i*size:(i+1)*size], from[i*size:])
			a.Transfer(ctx, agent.Transmit, size, post, time.Since(start))
			writes++
		} else {
			a.Error(ctx, semconv.ErrorNotFound)
			missing++
		}
	}
}
