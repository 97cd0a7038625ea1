// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// series holds what an agent needs to record under one set of attributes: the
// attribute sets of its points, and the values that its callback observes.
type series struct {
	attributes []attribute.KeyValue
	added      attribute.Set // by Agent.With

	agent     point // without further attributes
	direction [directions]point
	operation [memoryOperations]point
	errors    [statuses]point
	named     namedPoints

	last        lastValues
	balance     atomic.Int64 // bytes registered minus bytes deregistered
	memoryUsed  atomic.Bool  // memory was registered or deregistered
	usageBroken atomic.Bool  // more memory was deregistered than registered
}

// lastValues holds the last value of each kind, or -1.
type lastValues struct {
	size           [directions]atomic.Int64
	post, duration atomic.Int64 // µs
	memory         [memoryOperations]atomic.Int64
}

// point has the attributes of a data point, as options of the methods of instruments.
// A call with a prepared slice allocates nothing.
type point struct {
	add     []metric.AddOption
	record  []metric.RecordOption
	observe []metric.ObserveOption
}

func newSeries(attributes []attribute.KeyValue, added attribute.Set) *series {
	s := &series{attributes: slices.Concat(attributes, added.ToSlice()), added: added}
	s.agent = s.point()
	s.last.duration.Store(-1)
	for d := range s.direction {
		s.direction[d] = s.point(attribute.String(semconv.Direction, directionNames[d]))
		s.last.size[d].Store(-1)
	}
	for op := range s.operation {
		s.operation[op] = s.point(attribute.String(semconv.MemoryOperation, operationNames[op]))
		s.last.memory[op].Store(-1)
	}
	for i, name := range errorNames {
		s.errors[i] = s.point(attribute.String(semconv.ErrorType, name))
	}
	return s
}

func (s *series) point(more ...attribute.KeyValue) point {
	o := metric.WithAttributeSet(attribute.NewSet(append(more, s.attributes...)...))
	return point{[]metric.AddOption{o}, []metric.RecordOption{o}, []metric.ObserveOption{o}}
}

// observe is the agent's callback. A closed agent observes nothing, also in a collection
// that began before its callback was unregistered.
func (c *core) observe(_ context.Context, o metric.Observer) error {
	if c.closed.Load() {
		return nil
	}
	c.zeros.Do(c.addZeros)
	c.mu.Lock()
	all := c.all // the elements never change
	c.mu.Unlock()
	o.ObserveInt64(c.instruments.up, 1, c.root.agent.observe...)
	for _, s := range all {
		s.observeLast(c.instruments, o)
	}
	return nil
}

// addZeros starts the errors and the drops at 0, so that an alert can fire on the first
// one. It runs at the first collection or when the agent is closed, because the global
// MeterProvider may be set after the agent is created.
func (c *core) addZeros() {
	for i := range c.root.errors {
		c.instruments.errors.Add(context.Background(), 0, c.root.errors[i].add...)
	}
	c.drop(context.Background(), 0)
}

func (s *series) observeLast(i *instruments, o metric.Observer) {
	for d := range s.last.size {
		if v := s.last.size[d].Load(); v >= 0 {
			o.ObserveInt64(i.lastSize, v, s.direction[d].observe...)
		}
	}
	if v := s.last.duration.Load(); v >= 0 {
		o.ObserveFloat64(i.lastDuration, seconds(v), s.agent.observe...)
		o.ObserveFloat64(i.lastPost, seconds(s.last.post.Load()), s.agent.observe...)
	}
	for op := range s.last.memory {
		if v := s.last.memory[op].Load(); v >= 0 {
			o.ObserveInt64(i.lastMemory, v, s.operation[op].observe...)
		}
	}
	if usage := s.balance.Load(); s.memoryUsed.Load() && !s.usageBroken.Load() && usage >= 0 {
		o.ObserveInt64(i.usage, usage, s.agent.observe...)
	}
}

// maxNames bounds the memory for prepared points. The SDK's cardinality limit bounds the
// series.
const maxNames = 200

// namedPoints caches the points of custom events by category and name.
type namedPoints struct {
	mu     sync.Mutex
	points map[eventName]point
}

type eventName struct {
	category ringbuf.Category
	name     string
}

// of returns the point of an event. It allocates only for a new name.
func (n *namedPoints) of(s *series, c ringbuf.Category, name []byte) point {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, ok := n.points[eventName{c, string(name)}]
	if ok {
		return p
	}
	p = s.point(attribute.String(semconv.EventCategory, strings.ToLower(c.String())),
		attribute.String(semconv.EventName, text.Valid(string(name))))
	if n.points == nil {
		n.points = make(map[eventName]point)
	}
	if len(n.points) < maxNames {
		n.points[eventName{c, string(name)}] = p
	}
	return p
}

// seconds divides, as the receiver does, so that both report the same value.
func seconds(micros int64) float64 { return float64(micros) / 1e6 }
