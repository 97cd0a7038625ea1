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

// Agent records the transfers, memory registrations and errors of a Go program
// that moves data as a NIXL agent does. It reports the same metrics that the
// Collector receiver reports for a NIXL agent.
//
// All methods are safe for concurrent use. A nil *Agent is valid and does
// nothing; to turn telemetry off, leave the *Agent nil.
//
// Each method that records takes the context of the operation, as the SDK's
// instruments do. [Agent.Transfer] and [Agent.Error] take exemplars from it. The
// other methods don't use it yet, because their metrics have no exemplars.
// Recording never blocks and ignores cancellation.
type Agent struct {
	*core
	*series
}

// core is the state that an agent shares with the agents derived from it by
// [Agent.With].
type core struct {
	name     string
	claim    claim     // on the name, until the agent is closed
	producer *Producer // nil without a Producer
	outlet   *outlet   // nil without a ring and sinks

	mu      sync.Mutex // guards what follows
	derived map[derivation]*Agent
	all     []*series // of the agent and of the derived agents
	closed  bool

	closing  sync.Once
	closeErr error
}

// derivation identifies a call of With. A lookup by derivation doesn't have to
// build the set of all attributes.
type derivation struct {
	from *series
	set  attribute.Distinct
}

// New returns an agent that reports through a [Producer] or through a ring, and
// optionally to sinks. Agents with the same name and Producer share their
// metrics: the values add up. The error names the ring that can't be created, or
// the option or variable with an invalid value.
//
// The name must be a valid file name, even without a ring. Within a process,
// agents with the same name must all use a Producer or all use a ring; otherwise
// a backend would count their events twice, so New returns an error.
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

// maxDerived bounds the memory for attributes of high cardinality. Each set takes
// 10 KB.
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
// The same set returns the same agent.
//
// The two agents share the ring and the sinks, whose events have no attributes.
// Closing one closes both. After 1000 sets, otel.metric.overflow = true replaces
// the attributes of further sets.
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

// overflow returns the agent that records for all sets beyond the limit.
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

// Flush writes the staged events to the ring and the sinks immediately, instead
// of at the end of the run interval. It joins the errors of the ring and the
// sinks.
func (a *Agent) Flush() error {
	if a == nil || a.outlet == nil {
		return nil
	}
	return a.outlet.flush()
}

// Close flushes staged events, closes the ring, and stops recording: later calls
// do nothing. The ring file stays, as a NIXL agent's does.
//
// The agent can be closed before or after the MeterProvider is shut down: a
// closed agent is reported for another 5 minutes, as the receiver reports an
// exited agent, and at least once. An agent created with the same name within
// this time continues the counters; later, they restart at 0. If there are more
// than 2000 closed agents, the oldest are no longer reported.
//
// Close waits for the sinks, so a sink must not call it. Close the sinks after
// the agent. Further calls return the result of the first one.
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

// enter starts counting in s under the given attributes.
func (c *core) enter(attributes []attribute.KeyValue, s *series) {
	if c.producer != nil {
		c.producer.join(attribute.NewSet(attributes...), s)
	}
	c.all = append(c.all, s)
}

// leave stops counting for the agent and all derived agents.
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
