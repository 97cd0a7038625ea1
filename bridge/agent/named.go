// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// maxEventNames limits the names of custom events. It is the receiver's default.
const maxEventNames = 200

// namedEvents counts custom events by category and name.
type namedEvents struct {
	points *points

	mu       sync.Mutex
	series   map[namedKey]*namedSeries
	overflow *namedSeries // nil until the limit is reached
}

type namedKey struct {
	category ringbuf.Category
	name     string // as given; a valid name is reported as it is
}

type namedSeries struct {
	events int64
	sum    uint64
	last   uint64
	fresh  bool // the agent that recorded the last value is still reported
	full   bool // the sum has exceeded mostSum
	point  attribute.Set
}

// add counts an event. It allocates only for the first event of each name.
func (n *namedEvents) add(c ringbuf.Category, name []byte, value uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.series[namedKey{c, string(name)}]
	if s == nil {
		s = n.find(c, string(name))
	}
	s.events++
	s.sum += value
	s.full = s.full || s.sum < value
	s.last, s.fresh = value, true
}

func (n *namedEvents) find(c ringbuf.Category, name string) *namedSeries {
	key := namedKey{c, validName(name)}
	if s := n.series[key]; s != nil {
		return s
	}
	if len(n.series) >= maxEventNames {
		if n.overflow == nil {
			n.overflow = &namedSeries{point: n.points.with(attribute.Bool(semconv.MetricOverflow, true))}
		}
		return n.overflow
	}
	if n.series == nil {
		n.series = make(map[namedKey]*namedSeries)
	}
	s := &namedSeries{point: n.points.event(strings.ToLower(c.String()), key.name)}
	n.series[key] = s
	return s
}

func (n *namedEvents) collect(c *collection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.series {
		s.collect(c)
		if s.fresh {
			c.int(semconv.EventLastValue, s.point, saturatedSum(s.last))
		}
	}
	if n.overflow != nil {
		n.overflow.collect(c)
	}
}

// forgetLast stops reporting the last values.
func (n *namedEvents) forgetLast() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.series {
		s.fresh = false
	}
}

func (s *namedSeries) collect(c *collection) {
	sum := saturatedSum(s.sum)
	if s.full {
		sum = mostSum
	}
	c.int(semconv.Events, s.point, s.events)
	c.int(semconv.EventValue, s.point, sum)
}
