// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// kernel is a worker that lives until its input queue is closed. Its output
// queue is the next kernel's input queue.
type kernel struct {
	telemetry *ringkernel.Kernel
	work      func(message) (message, error)
	in        chan message
	next      *kernel // nil for the last
	orders    chan ringkernel.State
	done      chan struct{}
}

func newKernel(rt *ringkernel.Runtime, id string, queue int, work func(message) (message, error), next *kernel) *kernel {
	k := &kernel{
		telemetry: rt.Register(id),
		work:      work,
		in:        make(chan message, queue),
		next:      next,
		orders:    make(chan ringkernel.State),
		done:      make(chan struct{}),
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

// order has the kernel change its state. It takes messages when it is active
// or terminating, and leaves them in the queue when it is deactivated.
func (k *kernel) order(s ringkernel.State) {
	k.orders <- s
}

// terminate has the kernel work through what is in its queue and end. Nothing
// may be put there any more, and no order be given.
func (k *kernel) terminate() {
	k.order(ringkernel.StateTerminating)
	close(k.in)
	<-k.done
}

// become notes a state. It goes through them in order, so none is rejected.
func (k *kernel) become(s ringkernel.State) {
	if err := k.telemetry.SetState(s); err != nil {
		log.Print(err)
	}
}

func (k *kernel) run(ctx context.Context) {
	defer close(k.done)
	defer k.become(ringkernel.StateTerminated)
	var in chan message // nil, from which nothing ever comes, while not active
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

func (k *kernel) process(ctx context.Context, m message) {
	start := time.Now()
	m, err := k.work(m)
	if err != nil {
		k.telemetry.Error(ctx, err)
		return
	}
	k.telemetry.Processed(ctx, time.Since(start))
	if k.next != nil {
		k.next.put(ctx, m)
	}
	k.telemetry.Sent(ctx)
}

// put waits for room in the queue: a kernel is slowed down by the next.
func (k *kernel) put(ctx context.Context, m message) {
	k.in <- m
	k.telemetry.Received(ctx)
}

// offer drops the message when the queue is full: the world outside can't be
// slowed down.
func (k *kernel) offer(ctx context.Context, m message) {
	select {
	case k.in <- m:
		k.telemetry.Received(ctx)
	default:
		k.telemetry.Dropped(ctx, ringkernel.InputQueue)
	}
}

// pause deactivates the kernel for a while, again and again, until the context
// is done. The kernel is active afterwards.
func (k *kernel) pause(ctx context.Context, every, length time.Duration) {
	for wait(ctx, every) {
		k.order(ringkernel.StateDeactivated)
		wait(ctx, length)
		k.order(ringkernel.StateActive)
	}
}

// wait says whether the time passed before the context was done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
