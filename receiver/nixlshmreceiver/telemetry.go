// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// telemetry reports the receiver's own metrics.
type telemetry struct {
	*metadata.TelemetryBuilder
	census atomic.Pointer[census] // nil before the first collection
}

// census is the part of a collection that describes the agents.
type census struct {
	byLayout map[string]int64
	exited   int // agents that have exited
}

// host returns the functions that record the host's work.
func (t *telemetry) host() engine.Telemetry {
	ctx := context.Background()
	return engine.Telemetry{
		Searched: func(source string, took time.Duration) {
			t.ReceiverNixlShmDiscoveryDuration.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("source", source)))
		},
		Lag:    func(lag time.Duration) { t.ReceiverNixlShmDrainLag.Record(ctx, lag.Seconds()) },
		Events: func(n uint64) { t.ReceiverNixlShmDrainEvents.Add(ctx, int64(n)) },
		Saved: func(took time.Duration, err error) {
			t.ReceiverNixlShmCheckpointDuration.Record(ctx, took.Seconds())
			if err != nil {
				t.ReceiverNixlShmCheckpointFailures.Add(ctx, 1)
			}
		},
	}
}

// observe reports rings, directories and agents until Shutdown is called.
func (t *telemetry) observe(h *engine.Engine) error {
	// rate() misses the first value of a series, so the series must start at 0.
	t.ReceiverNixlShmCheckpointFailures.Add(context.Background(), 0)
	rings := t.RegisterReceiverNixlShmRingsCallback(func(_ context.Context, o metric.Int64Observer) error {
		t.observeRings(o, h.State())
		return nil
	})
	directories := t.RegisterReceiverNixlShmDiscoveryDirectoriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		for source, n := range h.State().Directories {
			o.Observe(int64(n), metric.WithAttributes(attribute.String("source", source)))
		}
		return nil
	})
	agents := t.RegisterReceiverNixlShmAgentsCallback(func(_ context.Context, o metric.Int64Observer) error {
		if c := t.census.Load(); c != nil {
			for layout, n := range c.byLayout {
				o.Observe(n, metric.WithAttributes(attribute.String("layout", layout)))
			}
		}
		return nil
	})
	return errors.Join(rings, directories, agents)
}

func (t *telemetry) observeRings(o metric.Int64Observer, s engine.State) {
	stale := 0
	if c := t.census.Load(); c != nil {
		stale = min(c.exited, s.Open) // the last collection is older than the state
	}
	observe := func(n int, state metadata.AttributeState, more ...attribute.KeyValue) {
		o.Observe(int64(n), metric.WithAttributes(append(more, attribute.String("state", state.String()))...))
	}
	observe(s.Open-stale, metadata.AttributeStateOpen)
	observe(stale, metadata.AttributeStateStale)
	reasons := make(map[string]int)
	for _, r := range s.Refused {
		reasons[r.Reason]++
	}
	for reason, n := range reasons {
		observe(n, metadata.AttributeStateRefused, attribute.String("reason", reason))
	}
}

// collected updates the census.
func (t *telemetry) collected(agents []engine.Snapshot) {
	c := census{byLayout: make(map[string]int64)}
	for i := range agents {
		c.byLayout[agents[i].LayoutName()]++
		if agents[i].Up == engine.UpNo {
			c.exited++
		}
	}
	t.census.Store(&c)
}
