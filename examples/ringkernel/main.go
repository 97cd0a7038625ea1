// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command ringkernel is a small ring-kernel runtime that reports its telemetry through
// bridge/ringkernel.
//
// Two kernels form a pipeline: parse reads samples from a line of text, and reduce computes
// their mean. Each is a goroutine that takes messages from a bounded queue until the program
// ends. Some lines can't be parsed, and reduce is slow, so the telemetry shows errors, full
// queues and dropped messages. The program prints a summary every few seconds.
//
//	OTEL_METRICS_EXPORTER=prometheus go run ./ringkernel
//	curl http://localhost:9464/metrics
//
// OpenTelemetry's variables apply: OTEL_METRICS_EXPORTER can also be console, none or otlp,
// which is the default and exports to a Collector at localhost:4318.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func main() {
	duration := flag.Duration("duration", time.Hour, "how long to run")
	every := flag.Duration("every", 5*time.Second, "time between summaries")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	reader, err := autoexport.NewMetricReader(ctx)
	if err == nil {
		err = run(ctx, reader, *every, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run feeds the pipeline until the context is done, and exports the last metrics.
func run(ctx context.Context, reader metric.Reader, every time.Duration, w io.Writer) error {
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	reduce := start(rt, "reduce", mean, nil)
	parse := start(rt, "parse", samples, reduce)

	summaries, lines := time.NewTicker(every), time.NewTicker(200*time.Microsecond)
	defer summaries.Stop()
	defer lines.Stop()
	for n := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-summaries.C:
			fmt.Fprintln(w, rt.Summary())
		case <-lines.C:
			n++
			parse.offer(ctx, message{line: line(n)})
		}
	}
	parse.terminate()
	reduce.terminate()
	fmt.Fprint(w, rt.Summary())

	// Don't use ctx, which is done.
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(provider.Shutdown(last), rt.Close())
}

// message is passed from kernel to kernel. Each kernel sets a field.
type message struct {
	line    string
	samples []float64
	mean    float64
}

// kernel is a worker that runs until its input queue is closed.
type kernel struct {
	telemetry *ringkernel.Kernel
	work      func(*message) error
	in        chan message
	next      *kernel // nil for the last one
	done      sync.WaitGroup
}

// start starts a kernel. A nil Runtime would turn its telemetry off.
func start(rt *ringkernel.Runtime, id string, work func(*message) error, next *kernel) *kernel {
	k := &kernel{telemetry: rt.Register(id), work: work, in: make(chan message, 64), next: next}
	k.telemetry.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(k.in), cap(k.in) })
	k.telemetry.SetState(ringkernel.StateActive)
	k.done.Go(k.run)
	return k
}

func (k *kernel) run() {
	ctx := context.Background() // in a traced program, that of the message, for exemplars
	for m := range k.in {
		start := time.Now()
		if err := k.work(&m); err != nil {
			k.telemetry.Error(ctx, err)
			continue
		}
		k.telemetry.Processed(ctx, time.Since(start))
		if k.next != nil {
			k.next.in <- m // waits while the queue is full
			k.next.telemetry.Received(ctx)
			k.telemetry.Sent(ctx)
		}
	}
}

// offer drops the message if the queue is full, because external input can't be slowed down.
func (k *kernel) offer(ctx context.Context, m message) {
	select {
	case k.in <- m:
		k.telemetry.Received(ctx)
	default:
		k.telemetry.Dropped(ctx, ringkernel.InputQueue)
	}
}

// terminate processes the remaining messages and stops the kernel.
func (k *kernel) terminate() {
	k.telemetry.SetState(ringkernel.StateTerminating)
	close(k.in)
	k.done.Wait()
	k.telemetry.SetState(ringkernel.StateTerminated)
}

// line returns a line of samples. One in 100 can't be parsed.
func line(n int) string {
	if n%100 == 0 {
		return "1 2 n/a"
	}
	return strings.Repeat(strconv.Itoa(n)+" ", 1+n%50)
}

// samples parses a line. The error.type of its errors is *strconv.NumError.
func samples(m *message) error {
	for word := range strings.FieldsSeq(m.line) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return fmt.Errorf("parse %q: %w", word, err)
		}
		m.samples = append(m.samples, v)
	}
	return nil
}

// mean computes the mean of the samples. It takes longer than the time between two lines.
func mean(m *message) error {
	<-time.After(time.Millisecond)
	for _, v := range m.samples {
		m.mean += v / float64(len(m.samples))
	}
	return nil
}
