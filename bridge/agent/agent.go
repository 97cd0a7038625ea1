// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
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
	*core
	*series // nil with a ring
}

// core is the state that an agent shares with the agents derived from it by
// [Agent.With].
type core struct {
	name        string
	instruments *instruments // nil with a ring
	root        *series      // of the agent itself; nil with a ring
	buffer      *buffer      // nil without a ring and sinks
	closed      atomic.Bool

	zeros        sync.Once
	registration metric.Registration // nil with a ring

	mu      sync.Mutex // guards what follows
	derived map[attribute.Distinct]*Agent
	all     []*series // of the agent and of the derived agents

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
	if err := checkName(name); err != nil {
		return nil, err
	}
	a, err := newAgent(name, opts)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	return a, nil
}

// checkName rejects a name that isn't valid as a ring's file name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	return nil
}

func newAgent(name string, opts []Option) (*Agent, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	a := &Agent{core: &core{name: name, derived: make(map[attribute.Distinct]*Agent)}}
	if err := a.openBuffer(&c); err != nil {
		return nil, err
	}
	if c.provider != nil {
		var attributes []attribute.KeyValue
		if !c.nameInResource {
			attributes = append(attributes, attribute.String(semconv.AgentName, text.Valid(name)))
		}
		a.root = newSeries(attributes, attribute.Set{})
		a.series, a.all = a.root, []*series{a.root}
		a.register(c.provider)
	}
	return a, nil
}

// maxDerived bounds the memory for attributes of high cardinality. Each set takes
// 6 KB.
const maxDerived = 1000

// With returns an agent that adds attributes to every data point, such as the
// peer and the backend of transfers:
//
//	peer := a.With(attribute.NewSet(
//		attribute.String(semconv.PeerAgentName, "prefill-3"),
//		attribute.String(semconv.BackendName, "UCX"),
//	))
//	peer.Transfer(ctx, agent.Transmit, bytes, postTime, totalTime)
//
// The receiver a doesn't record these values as well, so the sum over all
// attributes is the total. Recording costs the same as without attributes. With
// itself takes a lock and looks up the set; if possible, call it once per peer.
// The same set returns the same agent, also if it is added in several calls. Keys and
// values must be valid UTF-8.
//
// The two agents share the ring and the sinks, whose events have no attributes.
// Closing one closes both. After 1000 sets, the agent of a further set records without its
// attributes.
func (a *Agent) With(attributes attribute.Set) *Agent {
	if a == nil || a.series == nil || attributes.Len() == 0 {
		return a
	}
	if a.added.Len() > 0 {
		attributes = attribute.NewSet(slices.Concat(a.added.ToSlice(), attributes.ToSlice())...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.derived[attributes.Equivalent()]; known != nil {
		return known
	}
	switch {
	case a.closed.Load():
		return a
	case len(a.derived) >= maxDerived:
		return &Agent{core: a.core, series: a.root}
	}
	derived := &Agent{core: a.core, series: newSeries(a.root.attributes, attributes)}
	a.derived[attributes.Equivalent()] = derived
	a.all = append(a.all, derived.series)
	return derived
}

// Flush writes the staged events to the ring and the sinks immediately, instead
// of at the end of the run interval. It joins the errors of the ring and the
// sinks. It doesn't export metrics; that is up to the MeterProvider.
func (a *Agent) Flush() error {
	if a == nil || a.buffer == nil {
		return nil
	}
	return a.buffer.flush()
}

// Close flushes staged events, closes the ring, and stops recording: later calls
// do nothing. The ring file stays, as a NIXL agent's does.
//
// The agent can be closed before or after the MeterProvider is shut down. With Close,
// the series of nixl.agent.up, nixl.memory.usage and the last values of transfers and
// memory end. The counters and the histograms stay in the SDK, and so does
// nixl.event.last_value. An agent created with the same name continues them.
//
// Close waits for the sinks and for a running collection, so neither a sink nor a
// callback of the MeterProvider must call it. Close the sinks after the agent. Further calls return the result of the first one.
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
		if a.registration != nil {
			a.zeros.Do(a.addZeros)
			// Without a lock, because the SDK waits for a running collection.
			err = errors.Join(err, a.registration.Unregister())
		}
		if err != nil {
			a.closeErr = fmt.Errorf("close agent %s: %w", a.name, err)
		}
	})
	return a.closeErr
}
