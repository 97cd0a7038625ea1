// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// kernel is a worker that runs until its input queue is closed. Its output queue is the
// input queue of the next kernel.
type kernel struct {
	telemetry *ringkernel.Kernel
	tracer    trace.Tracer
	work      func(message) (message, error)
	in        chan message
	next      *kernel // nil for the last kernel
	orders    chan ringkernel.State
	done      chan struct{}
}

func newKernel(rt *ringkernel.Runtime, id string, queue int, work func(message) (message, error), next *kernel) *kernel {
	k := &kernel{
		telemetry: rt.Register(id),
		// Of the global TracerProvider, as in an instrumented library.
		tracer: otel.Tracer("github.com/nixl-otel/nixl-otel/examples/ringkernel"),
		work:   work,
		in:     make(chan message, queue),
		next:   next,
		orders: make(chan ringkernel.State),
		done:   make(chan struct{}),
	}
	k.telemetry.ObserveQueue(ringkernel.InputQueue, k.depth)
	if next != nil {
		k.telemetry.ObserveQueue(ringkernel.OutputQueue, next.depth)
	}
	return k
}

func (k *kernel) depth() (size, capacity int) { return len(k.in), cap(k.in) }

// launch starts the kernel, which then waits to be activated.
func (k *kernel) launch(ctx context.Context) {
	k.become(ringkernel.StateLaunched)
	go k.run(ctx)
}

// order changes the kernel's state. The kernel processes messages while it is active or
// terminating, and leaves them in the queue while it is deactivated.
func (k *kernel) order(s ringkernel.State) {
	k.orders <- s
}

// terminate processes the remaining messages in the queue and stops the kernel. The
// caller must not send further messages or orders.
func (k *kernel) terminate() {
	k.order(ringkernel.StateTerminating)
	close(k.in)
	<-k.done
}

// become records the kernel's state. The kernel changes its state in a valid order, so
// SetState never returns an error.
func (k *kernel) become(s ringkernel.State) {
	if err := k.telemetry.SetState(s); err != nil {
		log.Print(err)
	}
}

func (k *kernel) run(ctx context.Context) {
	defer close(k.done)
	defer k.become(ringkernel.StateTerminated)
	var in chan message // nil, which blocks forever, while the kernel is not active
	for {
		select {
		case s := <-k.orders:
			in = k.in
			if s == ringkernel.StateDeactivated {
				in = nil
			}
			k.become(s)
		case m, ok := <-in:
			if !ok {
				return
			}
			k.process(ctx, m)
		}
	}
}

// process processes a message in a span of the line's trace. If the trace is sampled, the
// latency gets an exemplar that names it.
func (k *kernel) process(ctx context.Context, m message) {
	ctx, span := k.tracer.Start(trace.ContextWithSpanContext(ctx, m.trace), k.telemetry.ID())
	defer span.End()
	start := time.Now()
	m, err := k.work(m)
	if err != nil {
		k.telemetry.Error(ctx, err)
		span.SetStatus(codes.Error, err.Error())
		return
	}
	k.telemetry.Processed(ctx, time.Since(start))
	if k.next != nil {
		k.next.put(ctx, m)
	}
	k.telemetry.Sent(ctx)
}

// put waits until the queue has room, so a slow kernel also slows down the previous one.
func (k *kernel) put(ctx context.Context, m message) {
	k.in <- m
	k.telemetry.Received(ctx)
}

// offer drops the message if the queue is full, because external input can't be slowed
// down.
func (k *kernel) offer(ctx context.Context, m message) {
	ctx, span := k.tracer.Start(ctx, "line")
	defer span.End()
	m.trace = span.SpanContext()
	select {
	case k.in <- m:
		k.telemetry.Received(ctx)
	default:
		k.telemetry.Dropped(ctx, ringkernel.InputQueue)
	}
}

// pause periodically deactivates the kernel until the context is done. Afterwards, the
// kernel is active.
func (k *kernel) pause(ctx context.Context, every, length time.Duration) {
	for wait(ctx, every) {
		k.order(ringkernel.StateDeactivated)
		wait(ctx, length)
		k.order(ringkernel.StateActive)
	}
}

// wait waits for d and returns true, or returns false if the context is done earlier.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
