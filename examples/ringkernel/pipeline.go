// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// pipeline is a chain of three kernels.
type pipeline struct {
	settings
	kernels []*kernel // from first to last
	paused  *kernel
}

func newPipeline(rt *ringkernel.Runtime, s settings) *pipeline {
	last := newKernel(rt, "format", s.queue, format, nil)
	middle := newKernel(rt, "reduce", s.queue, reduce, last)
	first := newKernel(rt, "parse", s.queue, parse, middle)
	return &pipeline{settings: s, kernels: []*kernel{first, middle, last}, paused: middle}
}

func (p *pipeline) last() *kernel { return p.kernels[len(p.kernels)-1] }

// run launches the kernels, feeds them until the context is done, and terminates them
// from first to last, so that no message is lost.
func (p *pipeline) run(ctx context.Context) {
	for _, k := range p.kernels {
		k.launch(ctx)
	}
	for _, k := range p.kernels {
		k.order(ringkernel.StateActive)
	}
	var pausing sync.WaitGroup
	if p.pauseEvery > 0 {
		pausing.Go(func() { p.paused.pause(ctx, p.pauseEvery, p.pause) })
	}
	p.feed(ctx)
	pausing.Wait()
	for _, k := range p.kernels {
		k.terminate()
	}
}

// feed offers lines to the first kernel at the configured rate. It offers several lines
// at a time, because a timer per line would take longer than processing the line.
func (p *pipeline) feed(ctx context.Context) {
	const interval = 10 * time.Millisecond
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	random := rand.New(rand.NewPCG(1, 1)) // the same lines each time
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		for due += float64(p.rate) * interval.Seconds(); due >= 1; due-- {
			p.kernels[0].offer(ctx, message{text: line(random, p.bad)})
		}
	}
}
