package main

import (
	"context"
	"errors"
	"log"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// model is the shape of what the pipeline runs.
type model struct {
	prompt, tokens, layers, experts int
}

// pipeline runs a mixture-of-experts model on two devices: attention and
// experts on the iGPU, the rest on the CPU. The model is made up; the devices
// take real time, at real work.
type pipeline struct {
	model
	session   *session.Session
	cpu, igpu *device
	packets   atomic.Int64
}

// device does one packet at a time.
type device struct {
	name  string
	busy  sync.Mutex
	width int     // of the matrix that stands for a packet's work
	fails float64 // how many of its packets do
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
	p.session.AddPromptTokens(int64(p.prompt))
	for range p.tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.token()
		p.session.AddGeneratedTokens(1)
	}
	return nil
}

// token takes one token through the layers.
func (p *pipeline) token() {
	p.do(p.cpu, "embedding", -1)
	for layer := range p.layers {
		p.do(p.igpu, "attention_layernorm", layer)
		p.do(p.igpu, "attention_qkv_proj", layer)
		p.do(p.cpu, "router_logits", layer)
		p.do(p.cpu, "expert_selection", layer)
		// The experts of a layer don't depend on each other.
		var experts sync.WaitGroup
		for range p.experts {
			experts.Go(func() { p.do(p.igpu, "expert_ffn", layer) })
		}
		experts.Wait()
	}
	p.do(p.cpu, "final_layernorm", p.layers)
	p.do(p.cpu, "lm_head", p.layers+1)
}

// do runs a packet where it should run, and on the CPU where that fails.
func (p *pipeline) do(target *device, operation string, layer int) {
	if err := p.try(target, target, operation, layer); err != nil && target != p.cpu {
		_ = p.try(target, p.cpu, operation, layer) // which doesn't fail
	}
}

// try runs a packet and records how that went.
func (p *pipeline) try(target, on *device, operation string, layer int) error {
	if !on.busy.TryLock() {
		p.session.AddContention(1)
		on.busy.Lock()
	}
	start := time.Now()
	memory, err := on.work()
	took := time.Since(start)
	on.busy.Unlock()

	packet := session.Packet{
		ID: p.packets.Add(1), Layer: layer, Operation: operation,
		Device: on.name, DeviceTarget: target.name,
		Duration: took, Memory: memory, Err: err,
	}
	if err != nil {
		packet.ErrorType = "out_of_memory"
	}
	// What can't be recorded is no reason to stop inference.
	if err := p.session.Record(packet); err != nil {
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
	for i, v := range output { // a norm, so that it may go on for ever
		d.input[i] = v / output[0]
	}
	return int64(8 * d.width * (d.width + 2)), nil
}
