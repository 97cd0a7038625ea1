// Command agent is a small agent in Go that moves blocks of memory, as a NIXL
// agent moves a KV cache, and reports what it does through the bridge.
//
// A backend, here a goroutine that copies memory, takes transfers from a queue.
// The agent registers memory with it, writes blocks to it and reads blocks
// back, and some transfers name a block that isn't there. All of that is in
// the telemetry, which goes wherever it is wanted:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317 go run ./examples/agent
//	go run ./examples/agent -ring /run/nixl      # for a Collector to read
//	NIXL_TELEMETRY_CSV_FILE=events.csv go run ./examples/agent
//
// It runs until it is interrupted, and then prints what it did.
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

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

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

// run moves blocks until the context is done or the duration over, and then has
// the last of the telemetry written.
func run(ctx context.Context, s settings, w io.Writer) (err error) {
	if s.rate <= 0 || s.blocks <= 0 || s.block <= 0 || s.duration < 0 {
		return errors.New("-rate, -blocks and -block must be more than 0, and -duration not less")
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	provider, shutdown, err := newProvider(ctx)
	if err != nil {
		return err
	}
	opts := []agent.Option{agent.WithMeterProvider(provider)}
	if s.ring != "" {
		opts = append(opts, agent.WithRing(agent.Ring{Dir: s.ring}))
	}
	if os.Getenv(sink.CSVFile) != "" {
		var file *sink.CSV
		file, err = sink.OpenCSVFromEnv()
		if err != nil {
			return errors.Join(err, shutdown())
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		opts = append(opts, agent.WithSinks(file))
	}
	a, err := agent.New(s.name, opts...)
	if err != nil {
		return errors.Join(err, shutdown())
	}
	defer func() {
		// The provider first: it collects what came last from the agent.
		err = errors.Join(err, shutdown(), a.Close())
	}()
	done := move(ctx, a, s)
	fmt.Fprintf(w, "%d writes, %d reads, %d bytes, %d not found\n", done.writes, done.reads, done.bytes, done.missing)
	return nil
}

// shutdownTime bounds the last export, so that a backend that is gone doesn't
// keep the program.
const shutdownTime = 5 * time.Second

// newProvider ships over OTLP gRPC if the environment says where to, and not at
// all otherwise. shutdown ships what came last.
func newProvider(ctx context.Context) (provider metric.MeterProvider, shutdown func() error, err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") == "" {
		return noop.NewMeterProvider(), func() error { return nil }, nil
	}
	p, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("agent-example"))
	if err != nil {
		return nil, nil, err
	}
	return p, func() error {
		// Not ctx: that is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			return fmt.Errorf("ship the last metrics: %w", err)
		}
		return nil
	}, nil
}
