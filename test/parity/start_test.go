// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// The start time of each counter is when the agent was discovered or created, even
// if the series began later. It doesn't change between collections.
func TestStartTimesStayTheSameFromTheDiscoveryOfTheAgent(t *testing.T) {
	// Each function collects before the operations and after them, and returns the collections.
	for name, run := range map[string]func(t *testing.T, do func(*agent.Agent, *ringbuf.Writer)) []pmetric.Metrics{
		"receiver": func(t *testing.T, do func(*agent.Agent, *ringbuf.Writer)) []pmetric.Metrics {
			dir := t.TempDir()
			w := newRing(t, filepath.Join(dir, agentName), capacity)
			c := startReceiver(t, dir, func(cfg *nixlshmreceiver.Config) { cfg.InitialDelay = 0 })
			<-c.came
			do(nil, w)
			c.stop()
			return c.all()
		},
		"agent": func(t *testing.T, do func(*agent.Agent, *ringbuf.Writer)) []pmetric.Metrics {
			b := otlpfile.NewSink(t)
			provider := pipeline(t, b)
			a, err := agent.New(agentName, agent.WithMeterProvider(provider))
			must.OK(t, err)
			defer a.Close()
			must.OK(t, provider.ForceFlush(t.Context()))
			do(a, nil)
			must.OK(t, provider.Shutdown(t.Context()))
			return b.Collections()
		},
		"rings": func(t *testing.T, do func(*agent.Agent, *ringbuf.Writer)) []pmetric.Metrics {
			dir, b := t.TempDir(), otlpfile.NewSink(t)
			w := newRing(t, filepath.Join(dir, agentName), capacity)
			p, err := rings.Open(rings.Config{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)})
			must.OK(t, err)
			defer p.Close()
			provider := pipeline(t, b, sdkmetric.WithProducer(p))
			must.OK(t, provider.ForceFlush(t.Context()))
			do(nil, w)
			must.OK(t, provider.Shutdown(t.Context()))
			return b.Collections()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first time.Time // when the operations began
			made := time.Now()
			batches := run(t, func(a *agent.Agent, w *ringbuf.Writer) {
				first = time.Now()
				for _, op := range stream(7, 200) {
					if a != nil {
						op.do(a)
					} else {
						push(t, w, op.events...)
					}
				}
			})
			starts := otlpfile.Starts(batches)
			if len(batches) != 2 || len(starts) != 1 {
				t.Fatalf("%d collections of %d agents, want 2 of 1", len(batches), len(starts))
			}
			for _, list := range starts {
				for _, start := range list { // the SDK has one for each instrument
					if at := start.AsTime(); at.Before(made) || at.After(first) {
						t.Errorf("start time %v, want %v to %v", at, made, first)
					}
				}
			}
		})
	}
}
