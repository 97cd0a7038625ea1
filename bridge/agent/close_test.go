// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// counter is a sink that counts events. The first Write waits for the channel, if any.
type counter struct {
	begun, proceed chan struct{}
	once           sync.Once
	events         atomic.Int64
}

func (c *counter) Write(events []sink.Event) error {
	if c.begun != nil {
		c.once.Do(func() { close(c.begun); <-c.proceed })
	}
	c.events.Add(int64(len(events)))
	return nil
}

// While an agent is closed, events aren't counted any more that can't be written.
func TestEventsDuringTheLastFlushAreNotRecorded(t *testing.T) {
	b := newBackend()
	c := &counter{begun: make(chan struct{}), proceed: make(chan struct{})}
	a := b.agent(t, agent.WithSinks(c), agent.WithRunInterval(time.Hour))
	a.MemoryRegistered(ctx, 1)
	closed := make(chan error)
	go func() { closed <- a.Close() }()
	<-c.begun
	a.MemoryRegistered(ctx, 1)
	close(c.proceed)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := b.values(t)["nixl.memory.registered{}"]; n != 1 || c.events.Load() != 1 {
		t.Errorf("%v events were counted and %d written, want 1", n, c.events.Load())
	}
	if got := a.RingTelemetry(); got != (agent.RingTelemetry{}) {
		t.Errorf("RingTelemetry: %+v", got)
	}
}

// Each event that the SDK counts is written or counted as dropped.
func TestEventsDuringCloseAreWrittenOrDropped(t *testing.T) {
	for range 300 {
		b := newBackend()
		c := &counter{}
		a := b.agent(t, agent.WithSinks(c), agent.WithRunInterval(time.Hour), agent.WithCapacity(1<<16))
		var recorders sync.WaitGroup
		for range 4 {
			recorders.Go(func() {
				for range 50 {
					a.MemoryRegistered(ctx, 1)
				}
			})
		}
		must.OK(t, a.Close())
		recorders.Wait()
		got := b.values(t)
		counted, dropped := got["nixl.memory.registered{}"], got["nixl.telemetry.events.dropped{}"]
		if written := float64(c.events.Load()); counted != written+dropped {
			t.Fatalf("%v events were counted, %v written, %v dropped", counted, written, dropped)
		}
		if n := a.RingTelemetry().DroppedStaging; float64(n) != dropped {
			t.Fatalf("RingTelemetry has %d dropped events, the metric %v", n, dropped)
		}
	}
}
