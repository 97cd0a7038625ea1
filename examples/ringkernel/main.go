// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command ringkernel is a small ring-kernel runtime that reports its telemetry through
// bridge/ringkernel.
//
// Three kernels form a pipeline: parse reads samples from a line of text, reduce computes
// their mean and deviation, and format encodes the result as JSON. Each kernel is a
// goroutine that runs until the program ends and takes messages from a bounded queue.
// Some lines can't be parsed, some contain no samples, and reduce is deactivated
// periodically, so the telemetry shows errors, full queues and dropped messages.
//
//	OTEL_METRICS_EXPORTER=none OTEL_TRACES_EXPORTER=none go run ./ringkernel
//	curl -H 'Accept: application/openmetrics-text' http://localhost:9464/metrics
//
// The program prints a summary every 5 seconds until it is interrupted, and then the
// number of results that the last kernel sent. Meanwhile, its metrics are on a Prometheus
// page. One line in 100 is traced, and the page has the trace IDs of such lines as
// exemplars of ringkernel.message.duration.
//
// Without the variables, it also exports metrics and traces over OTLP, to a Collector at
// localhost:4318. All of OpenTelemetry's variables apply, such as
// OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL and OTEL_METRIC_EXPORT_INTERVAL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// settings holds the values of the flags.
type settings struct {
	duration   time.Duration // 0 to run until interrupted
	every      time.Duration // between summaries
	rate       int           // lines/s
	queue      int           // capacity of each queue
	bad        float64       // share of lines that can't be parsed
	pauseEvery time.Duration // between deactivations of reduce; 0 for none
	pause      time.Duration
	telemetry  bool
	listen     string // address of the Prometheus page; empty for none
}

func main() {
	var s settings
	flag.DurationVar(&s.duration, "duration", 0, "how long to run; 0 to run until interrupted")
	flag.DurationVar(&s.every, "every", 5*time.Second, "time between summaries")
	flag.IntVar(&s.rate, "rate", 1000, "lines per second")
	flag.IntVar(&s.queue, "queue", 256, "capacity of each queue, in messages")
	flag.Float64Var(&s.bad, "bad", 0.01, "share of lines that can't be parsed, 0 to 1")
	flag.DurationVar(&s.pauseEvery, "pause-every", 10*time.Second, "time between deactivations of reduce; 0 for none")
	flag.DurationVar(&s.pause, "pause", time.Second, "how long reduce is deactivated")
	flag.BoolVar(&s.telemetry, "telemetry", true, "collect telemetry")
	flag.StringVar(&s.listen, "listen", "localhost:9464", "address of the Prometheus page; empty for none")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ringkernel:", err)
		os.Exit(1)
	}
}

// run runs the pipeline until the context is done or the duration is over, and
// then exports the last metrics.
func run(ctx context.Context, s settings, w io.Writer) (err error) {
	if err := s.validate(); err != nil {
		return err
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	var rt *ringkernel.Runtime // nil turns telemetry off
	if s.telemetry {
		shutdown, err := export(ctx, s.listen)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shutdown()) }()
		rt = ringkernel.NewRuntime()
	}

	var printing sync.WaitGroup
	printing.Go(func() { printSummaries(ctx, w, rt, s.every) })
	p := newPipeline(rt, s)
	p.run(ctx)
	printing.Wait()
	fmt.Fprint(w, rt.Summary())
	if last, ok := rt.Telemetry(p.last().telemetry.ID()); ok {
		_, err = fmt.Fprintf(w, "%s sent %d results\n", last.KernelID, last.MessagesSent)
	}
	return err
}

// printSummaries prints a summary periodically until the context is done.
func printSummaries(ctx context.Context, w io.Writer, rt *ringkernel.Runtime, every time.Duration) {
	for wait(ctx, every) {
		fmt.Fprintf(w, "\n%v", rt.Summary())
	}
}

// validate returns an error that names the flag with an invalid value.
func (s settings) validate() error {
	switch {
	case s.every <= 0:
		return fmt.Errorf("-every %v: must be more than 0", s.every)
	case s.rate <= 0:
		return fmt.Errorf("-rate %d: must be more than 0", s.rate)
	case s.queue <= 0:
		return fmt.Errorf("-queue %d: must be more than 0", s.queue)
	case s.bad < 0 || s.bad > 1:
		return fmt.Errorf("-bad %v: must be from 0 to 1", s.bad)
	case s.duration < 0 || s.pauseEvery < 0 || s.pause < 0:
		return errors.New("-duration, -pause-every and -pause must not be negative")
	}
	return nil
}
