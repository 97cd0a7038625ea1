// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/bridge/internal/sampled"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Agent reports what a Go program does that moves data as NIXL agents do. Its
// metrics are those that the Collector receiver reports for a NIXL agent.
//
// All methods are safe for concurrent use. A nil *Agent is valid and does
// nothing, so a program in which telemetry is off leaves its *Agent nil.
//
// Each method that records takes the context of the operation, as the SDK's
// instruments do. [Agent.Transfer] and [Agent.Error] take exemplars from it. The
// others don't use it yet, because their metrics have no exemplars; pass it all
// the same. Recording never blocks, so it doesn't matter whether the context is
// canceled.
type Agent struct {
	*core
	*series
}

// core is what an agent shares with those that [Agent.With] derives from it.
type core struct {
	name     string
	claim    claim     // on the name, until the agent is closed
	producer *Producer // nil without
	outlet   *outlet   // nil without a ring and sinks

	mu      sync.Mutex // guards what follows
	derived map[derivation]*Agent
	all     []*series // of the agent and of those in derived
	closed  bool

	closing  sync.Once
	closeErr error
}

// derivation is a call of With. Looking it up takes no set of all attributes.
type derivation struct {
	from *series
	set  attribute.Distinct
}

// New returns an agent that reports through a [Producer] or by a ring, and to
// sinks. Agents with the same name and Producer add up. The error names the ring
// that can't be created, or the option or variable with an invalid value.
//
// A name must be a file name, with or without a ring. New rejects a Producer
// while another agent of this process with the same name has a ring, and the
// other way round: a backend would count the agent twice.
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

func newAgent(name string, opts []Option) (*Agent, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		core:   &core{name: name, claim: c.claim(), producer: c.producer, derived: make(map[derivation]*Agent)},
		series: newSeries(c.clock, sampled.Environment(), c.producer != nil && c.producer.sizeClasses),
	}
	if err := a.claim.take(name); err != nil {
		return nil, err
	}
	if a.outlet, err = openOutlet(a, &c); err != nil {
		a.claim.release(name)
		return nil, err
	}
	var attributes []attribute.KeyValue
	if !c.nameInResource {
		attributes = append(attributes, attribute.String(semconv.AgentName, validName(name)))
	}
	a.whole = true
	a.enter(attributes, a.series)
	return a, nil
}

// maxDerived bounds the memory for attributes with ever new values, at 10 KB
// each.
const maxDerived = 1000

// With returns an agent that adds attributes to each data point that it
// records, such as the peer and the backend of transfers:
//
//	peer := a.With(attribute.NewSet(
//		attribute.String(semconv.PeerAgentName, "prefill-3"),
//		attribute.String(semconv.BackendName, "UCX"),
//	))
//	peer.Transfer(ctx, agent.Transmit, bytes, postTime, totalTime)
//
// What it records isn't recorded by a as well, so the sum over all attributes is
// the total. Recording costs the same as without attributes. With itself takes a
// lock and looks the set up; call it once per peer if you can. The same set
// returns the same agent.
//
// The two share everything else: the ring and the sinks, whose events have no
// attributes, and the lifetime. Closing one closes both. Past 1000 sets,
// attributes are replaced by otel.metric.overflow = true.
func (a *Agent) With(attributes attribute.Set) *Agent {
	if a == nil || a.account == nil || attributes.Len() == 0 {
		return a
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	d := derivation{a.series, attributes.Equivalent()}
	if known := a.derived[d]; known != nil {
		return known
	}
	if a.closed {
		return a
	}
	if len(a.derived) >= maxDerived {
		return a.overflow()
	}
	return a.derive(d, attributes)
}

// overflow is the agent that stands for all sets past the limit.
func (a *Agent) overflow() *Agent {
	root := &Agent{core: a.core, series: a.all[0]}
	set := attribute.NewSet(attribute.Bool(semconv.MetricOverflow, true))
	d := derivation{root.series, set.Equivalent()}
	if known := a.derived[d]; known != nil {
		return known
	}
	return root.derive(d, set)
}

func (a *Agent) derive(d derivation, attributes attribute.Set) *Agent {
	all := slices.Concat(a.account.points.attributes, attributes.ToSlice())
	derived := &Agent{core: a.core, series: newSeries(a.clock, a.filter, a.classes)}
	a.enter(all, derived.series)
	a.derived[d] = derived
	return derived
}

// Flush writes the staged events to the ring and the sinks now, rather than at
// the end of the run interval. It joins the errors of the ring and of the
// sinks.
func (a *Agent) Flush() error {
	if a == nil || a.outlet == nil {
		return nil
	}
	return a.outlet.flush()
}

// Close flushes, closes the ring, whose file stays as a NIXL agent's does, and
// ends the recording: later calls do nothing.
//
// The agent can be closed before or after the MeterProvider is shut down: a
// closed agent is reported for 5 more minutes, as the receiver reports an agent
// that exited, and at least once. An agent created within this time with the
// same name continues its counters; later, they start over. Of more than 2000
// closed agents, the oldest are no longer reported.
//
// Close sinks after the agent. Close waits for them, so a sink must not call
// it. Further calls return what the first one returned.
func (a *Agent) Close() error {
	if a == nil {
		return nil
	}
	a.closing.Do(func() {
		var err error
		if a.outlet != nil {
			err = a.outlet.close()
		}
		a.leave()
		a.claim.release(a.name)
		if err != nil {
			a.closeErr = fmt.Errorf("close agent %s: %w", a.name, err)
		}
	})
	return a.closeErr
}

// enter starts to count with s under attributes.
func (c *core) enter(attributes []attribute.KeyValue, s *series) {
	if c.producer != nil {
		c.producer.join(attribute.NewSet(attributes...), s)
	}
	c.all = append(c.all, s)
}

// leave ends the counting under all attributes.
func (c *core) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, s := range c.all {
		s.done.Store(true)
	}
	if c.producer != nil {
		c.producer.waiting.Closing()
		c.producer.leave(c.all)
	}
}
