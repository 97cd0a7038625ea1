// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

	closing  sync.Once
	closeErr error
}

// New returns an agent that reports through a MeterProvider or, with [WithRing],
// through a ring. The error names the ring that can't be created, or the option or
// variable with an invalid value.
//
// The name must be a valid file name, even without a ring, so that a program can switch
// between a ring and a MeterProvider. New returns an error if a running Go agent, of any process,
// already writes the same ring. Agents with the same name and MeterProvider share their
// series, so that nixl.agent.up is their number.
func New(name string, opts ...Option) (*Agent, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return nil, fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	a := &Agent{name: name}
	c, err := newConfig(opts)
	if err == nil && !c.ring && !c.off {
		a.series = boards.Of(c.provider).Series(name)
	}
	if err == nil && (c.ring || len(c.sinks) > 0) {
		a.buffer, err = openBuffer(a, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	if a.series != nil {
		a.series.opened()
	}
	return a, nil
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
// The agent can be closed before or after the MeterProvider is shut down. Its series stay with
// their final values until then; nixl.agent.up is 0. An agent created with the same name
// continues them, but its nixl.memory.usage begins at 0.
//
// Close waits for the sinks, so a sink must not call it. Close the sinks after the agent.
// Further calls return the result of the first one.
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
			a.series.closed()
		}
		if err != nil {
			a.closeErr = fmt.Errorf("close agent %s: %w", a.name, err)
		}
	})
	return a.closeErr
}
