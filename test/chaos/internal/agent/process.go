// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package agent runs simulated agents in processes of their own, which may be
// killed at any instruction, and finds out afterwards what they have written.
//
// An agent notes its totals in a journal before each flush. What of the flush
// reached the ring before the agent was killed, the ring itself tells: its
// write position says how many events, and they still stand in their slots.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config is one life of an agent: a process.
type Config struct {
	Path        string // of the ring
	Journal     string // path
	Layout      ringbuf.Layout
	Capacity    int
	RunInterval time.Duration
	Rate        float64 // transfers per second
	Seed        uint64
	Stream      uint64 // tells lives of one seed apart
}

// variable holds the configuration of a process that is to be an agent.
const variable = "NIXL_CHAOS_AGENT"

// started is what an agent prints when its ring is there.
const started = "started"

// Main makes the process an agent if it was started as one; else it returns.
// The main function of a test calls it first: the test's own program is the
// agent's too.
func Main() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var cfg Config
	err := json.Unmarshal([]byte(text), &cfg)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = run(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run lives until ctx ends, or until the ring is gone from under the agent.
func run(ctx context.Context, cfg Config) error {
	traffic := simulate.KVCache()
	traffic.ErrorShare = 0.02
	a, err := simulate.New(simulate.Config{
		Path: cfg.Path, Lives: []simulate.Life{{Layout: cfg.Layout, Capacity: cfg.Capacity}},
		RunInterval: cfg.RunInterval, Rate: cfg.Rate, Traffic: traffic, Seed: cfg.Seed, Stream: cfg.Stream,
	})
	if err != nil {
		return err
	}
	j, err := createJournal(cfg.Journal)
	if err != nil {
		return err
	}
	if err := a.Start(); err != nil {
		return err
	}
	if err := j.note(a); err != nil {
		return err
	}
	fmt.Println(started)
	ticker := time.NewTicker(cfg.RunInterval)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return errors.Join(a.Stop(), j.note(a))
		case <-ticker.C:
		}
		now := time.Now()
		if err := errors.Join(a.Tick(now.Sub(last)), j.note(a)); err != nil {
			return err
		}
		last = now
	}
}
