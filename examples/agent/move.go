// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// transfer is a transfer of a block to or from the backend's memory.
type transfer struct {
	direction agent.Direction
	block     []byte // the agent's block
	number    int    // the number of the backend's block
	done      chan<- error
}

// notFoundError means that the backend doesn't have the block.
type notFoundError struct{}

func (notFoundError) Error() string { return "no such block" }

// backend copies blocks until its queue is closed.
func backend(queue <-chan transfer, memory [][]byte) {
	for t := range queue {
		switch {
		case t.number >= len(memory):
			t.done <- notFoundError{}
			continue
		case t.direction == agent.Transmit:
			copy(memory[t.number], t.block)
		default:
			copy(t.block, memory[t.number])
		}
		t.done <- nil
	}
}

// totals counts the agent's transfers.
type totals struct{ writes, reads, bytes, missing int64 }

// move transfers blocks at the configured rate until the context is done.
func move(ctx context.Context, a *agent.Agent, s settings) (did totals) {
	memory := make([][]byte, s.blocks)
	for i := range memory {
		memory[i] = make([]byte, s.block)
	}
	queue := make(chan transfer, 1)
	var working sync.WaitGroup
	working.Go(func() { backend(queue, memory) })
	defer working.Wait()
	defer close(queue)

	registered := int64(s.blocks) * int64(s.block)
	a.MemoryRegistered(ctx, registered)
	defer a.MemoryDeregistered(ctx, registered)

	block := make([]byte, s.block)
	ticker := time.NewTicker(max(time.Second/time.Duration(s.rate), time.Microsecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return did
		case <-ticker.C:
		}
		// Some of these blocks don't exist.
		did.one(ctx, a, queue, block, rand.IntN(s.blocks+1+s.blocks/64))
	}
}

// one makes a transfer and records the result with the agent.
func (did *totals) one(ctx context.Context, a *agent.Agent, queue chan<- transfer, block []byte, number int) {
	direction := agent.Direction(rand.IntN(2))
	done := make(chan error, 1)
	start := time.Now()
	queue <- transfer{direction: direction, block: block, number: number, done: done}
	posted := time.Since(start)
	err := <-done
	total := time.Since(start)
	if err != nil {
		a.Error(ctx, semconv.ErrorNotFound)
		did.missing++
		return
	}
	a.Transfer(ctx, direction, int64(len(block)), posted, total)
	did.bytes += int64(len(block))
	if direction == agent.Transmit {
		did.writes++
	} else {
		did.reads++
	}
}
