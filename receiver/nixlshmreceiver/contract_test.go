// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	signal "go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Every slow transfer is delivered exactly once, or dropped exactly once if the next
// consumer rejects it permanently.
func TestLogsFulfillTheConsumeContract(t *testing.T) {
	h := newHarness(t, t.TempDir(), func(c *Config) {
		c.InitialDelay, c.CollectionInterval, c.Logs.Rate = 0, 5*time.Millisecond, 1e6
	})
	f := newFactory(h.on)
	create := func(ctx context.Context, settings receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
		marked, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
			for _, rl := range logs.ResourceLogs().All() {
				for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
					size, _ := r.Attributes().Get(semconv.TransferSizeBytes)
					r.Attributes().PutStr(receivertest.UniqueIDAttrName, size.AsString())
				}
			}
			return next.ConsumeLogs(ctx, logs)
		})
		must.OK(t, err)
		return f.CreateLogs(ctx, settings, cfg, marked)
	}
	receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
		T: t, Signal: signal.SignalLogs, Config: h.cfg, GenerateCount: 60, Generator: &generator{t: t, dir: h.cfg.Directories[0]},
		Factory: receiver.NewFactory(f.Type(), f.CreateDefaultConfig, receiver.WithLogs(create, f.LogsStability())),
	})
}

// generator is an agent with slow transfers, a new one for each scenario.
type generator struct {
	t   *testing.T
	dir string

	mu    sync.Mutex
	rings int
	id    uint64 // of a transfer: its size
	ring  *ringbuf.Writer
}

func (g *generator) Start() {
	g.rings++
	g.ring = ring(g.t, g.dir, fmt.Sprint("agent-", g.rings), ringbuf.V4, 4096)
}

func (g *generator) Stop() { must.OK(g.t, g.ring.Close()) }

func (g *generator) Generate() []receivertest.UniqueIDAttrVal {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id++
	push(g.t, g.ring, write(g.id, 2_000_000, 1)...)
	return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(strconv.FormatUint(g.id, 10))}
}
