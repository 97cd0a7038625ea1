// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package agent runs simulated agents in their own processes, which may be killed at any time, and
// determines afterwards which events they have written.
//
// An agent records its totals in a journal before each flush. The ring's write position shows how
// many events of the flush reached the ring before the agent was killed, and its slots contain
// these events.
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

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config is one life of an agent: a process.
type Config struct {
	Path        string // path of the ring
	Journal     string // path of the journal
	Layout      ringbuf.Layout
	Capacity    int
	RunInterval time.Duration
	Rate        float64 // transfers per second
	Seed        uint64
	Stream      uint64 // distinguishes lives with the same seed
}

// variable is the environment variable with the configuration of an agent's process.
const variable = "NIXL_CHAOS_AGENT"

// started is the line that an agent prints when it has created its ring.
const started = "started"

// Main runs an agent and exits if the process was started as one; otherwise it returns. TestMain
// calls it first, because the test binary is also the agent's program.
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

// run runs the agent until ctx ends or the agent can't write its ring.
func run(ctx context.Context, cfg Config) error {
	traffic := simulate.KVCache()
	traffic.ErrorShare = 0.02
	events := oracle.New()
	a, err := simulate.New(simulate.Config{
		Path: cfg.Path, Lives: []simulate.Life{{Layout: cfg.Layout, Capacity: cfg.Capacity}},
		RunInterval: cfg.RunInterval, Rate: cfg.Rate, Traffic: traffic, Seed: cfg.Seed, Stream: cfg.Stream, Journal: events,
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
	if err := j.note(events); err != nil {
		return err
	}
	fmt.Println(started)
	ticker := time.NewTicker(cfg.RunInterval)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return errors.Join(a.Stop(), j.note(events))
		case <-ticker.C:
		}
		now := time.Now()
		if err := errors.Join(a.Tick(now.Sub(last)), j.note(events)); err != nil {
			return err
		}
		last = now
	}
}
