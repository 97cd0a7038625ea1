// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
)

// Agent records the transfers, memory registrations and errors of a Go program
// that moves data as a NIXL agent does. It reports the same metrics that the
// Collector receiver reports for a NIXL agent.
//
// All methods are safe for concurrent use. A nil *Agent is valid and does
// nothing; to turn telemetry off, leave the *Agent nil.
//
// Each method that records takes the context of the operation and passes it to
// the SDK, which takes exemplars from it. Recording ignores cancellation.
type Agent struct {
	name   string
	series *series // nil with a ring
	buffer *buffer // nil without a ring and sinks
	closed atomic.Bool

	registration metric.Registration // nil with a ring

	closing  sync.Once
	closeErr error
}

// New returns an agent that reports through a MeterProvider or, with [WithRing],
// through a ring. The error names the ring that can't be created, or the option or
// variable with an invalid value.
//
// The name must be a valid file name, even without a ring, so that a program can switch
// between a ring and a MeterProvider. New returns an error if an open agent of this process
// already writes the same ring. Agents with the same name and MeterProvider share their
// series, so that nixl.agent.up is their number.
func New(name string, opts ...Option) (*Agent, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return nil, fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	a := &Agent{name: name}
	c, err := newConfig(opts)
	meter := scope.NewMeter(c.provider)
	if err == nil && !c.ring {
		a.series = newSeries(name, meter)
	}
	if err == nil && (c.ring || len(c.sinks) > 0) {
		a.buffer, err = openBuffer(a, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	if s := a.series; s != nil {
		// A collection can call back at once, so all that it reads must be set before.
		a.registration = meter.Observe(a.observe, s.up, s.usage, s.lastSizeGauge, s.lastMemoryGauge, s.lastDurationGauge, s.lastPostGauge)
	}
	return a, nil
}

// observe is the agent's callback. A closed agent observes nothing, also in a collection
// that began before its callback was unregistered.
func (a *Agent) observe(_ context.Context, o metric.Observer) error {
	if a.open() {
		a.series.observe(o)
	}
	return nil
}

// Flush writes the staged events to the ring and the sinks immediately, instead
// of at the end of the run interval. It joins the errors of the ring and the
// sinks. It doesn't export metrics; that is up to the MeterProvider.
func (a *Agent) Flush() error {
	if a == nil || a.buffer == nil {
		return nil
	}
	_, err := a.buffer.flush(false)
	return err
}

// Close flushes staged events, closes the ring, and stops recording: later calls
// do nothing. The ring file stays, as a NIXL agent's does.
//
// The agent can be closed before or after the MeterProvider is shut down. With Close,
// the series of nixl.agent.up, nixl.memory.usage and the last values of transfers and
// memory end. The counters and the histograms stay in the SDK. An agent created with the
// same name continues them.
//
// Close waits for the sinks and for a running collection, so a sink and a callback of the
// MeterProvider must not call it. Close the sinks after the agent. Further calls return the
// result of the first one.
func (a *Agent) Close() error {
	if a == nil {
		return nil
	}
	a.closing.Do(func() {
		a.closed.Store(true) // first, so that later events are neither counted nor staged
		var err error
		if a.buffer != nil {
			err = a.buffer.close()
		}
		if a.series != nil {
			a.series.addZeros()
			// Without a lock, because the SDK waits for a running collection.
			err = errors.Join(err, a.registration.Unregister())
		}
		if err != nil {
			a.closeErr = fmt.Errorf("close agent %s: %w", a.name, err)
		}
	})
	return a.closeErr
}
