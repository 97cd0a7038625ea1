// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// expertsPerLayer is the number of experts that the router selects from.
const expertsPerLayer = 8

// model is the shape of the model that the pipeline runs.
type model struct {
	prompt, tokens, layers, experts int
}

// pipeline runs a mixture-of-experts model on two devices: attention and experts on the
// iGPU, the rest on the CPU. The model is simulated, but each packet does real work.
type pipeline struct {
	model
	session   *session.Session
	cpu, igpu *device
	packets   atomic.Int64
}

// device runs one packet at a time.
type device struct {
	name  string
	busy  sync.Mutex
	width int     // of the matrix that a packet multiplies
	fails float64 // share of packets that fail
	input []float64
}

var errMemory = errors.New("iGPU out of memory")

func newPipeline(m model, s *session.Session) *pipeline {
	return &pipeline{
		model: m, session: s,
		cpu:  &device{name: session.CPU, width: 64},
		igpu: &device{name: session.IGPU, width: 128, fails: 0.01},
	}
}

// generate reads the prompt and generates the tokens.
func (p *pipeline) generate(ctx context.Context) error {
	p.session.AddPromptTokens(ctx, int64(p.prompt))
	for range p.tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.token(ctx)
		p.session.AddGeneratedTokens(ctx, 1)
	}
	return nil
}

// job is a work packet that hasn't run yet.
type job struct {
	operation string
	layer     int
	expert    string
}

// token runs the packets of one token.
func (p *pipeline) token(ctx context.Context) {
	p.do(ctx, p.cpu, job{operation: "embedding", layer: -1})
	for layer := range p.layers {
		p.do(ctx, p.igpu, job{operation: "attention_layernorm", layer: layer})
		p.do(ctx, p.igpu, job{operation: "attention_qkv_proj", layer: layer})
		p.do(ctx, p.cpu, job{operation: "router_logits", layer: layer})
		p.do(ctx, p.cpu, job{operation: "expert_selection", layer: layer})
		// The experts of a layer can run concurrently.
		var running sync.WaitGroup
		for _, expert := range rand.Perm(expertsPerLayer)[:p.experts] {
			running.Go(func() {
				p.do(ctx, p.igpu, job{"expert_ffn", layer, strconv.Itoa(expert)})
			})
		}
		running.Wait()
	}
	p.do(ctx, p.cpu, job{operation: "final_layernorm", layer: p.layers})
	p.do(ctx, p.cpu, job{operation: "lm_head", layer: p.layers + 1})
}

// do runs a job on a device or, if that fails, on the CPU.
func (p *pipeline) do(ctx context.Context, target *device, j job) {
	if err := p.try(ctx, target, target, j); err != nil && target != p.cpu {
		_ = p.try(ctx, target, p.cpu, j) // the CPU never fails
	}
}

// try runs a job on a device and records the packet.
func (p *pipeline) try(ctx context.Context, target, on *device, j job) error {
	if !on.busy.TryLock() {
		p.session.AddContentionEvents(ctx, 1)
		on.busy.Lock()
	}
	start := time.Now()
	memory, err := on.work()
	took := time.Since(start)
	on.busy.Unlock()

	packet := session.Packet{
		ID: p.packets.Add(1), Layer: j.layer, Operation: j.operation, Expert: j.expert,
		Device: on.name, DeviceTarget: target.name,
		Duration: took, Memory: memory, Err: err,
	}
	if err != nil {
		packet.ErrorType = "out_of_memory"
	}
	// Don't stop inference if the row can't be written.
	if err := p.session.Record(ctx, packet); err != nil {
		log.Print(err)
	}
	return err
}

// work multiplies a vector by a matrix, or fails.
func (d *device) work() (memory int64, err error) {
	if rand.Float64() < d.fails {
		return 0, errMemory
	}
	if d.input == nil {
		d.input = make([]float64, d.width)
		for i := range d.input {
			d.input[i] = rand.Float64()
		}
	}
	output := make([]float64, d.width)
	for row := range output {
		for column, v := range d.input {
			output[row] += v / float64(row+column+1)
		}
	}
	for i, v := range output { // normalize, so that values stay finite
		d.input[i] = v / output[0]
	}
	return int64(8 * d.width * (d.width + 2)), nil
}
