package agent

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// maxEventNames bounds the names of an agent's own events, as the receiver does
// by default.
const maxEventNames = 200

// namedEvents counts events of one's own, by category and name, of the agents
// of an account.
type namedEvents struct {
	points *points

	mu       sync.Mutex
	series   map[namedKey]*namedSeries
	overflow *namedSeries // past the limit; nil before
}

type namedKey struct {
	category ringbuf.Category
	name     string // as it was given; each valid one is reported as it is
}

type namedSeries struct {
	events int64
	sum    uint64
	last   uint64
	fresh  bool // the last value is of an agent that isn't closed
	full   bool // the sum has passed what a counter of OTLP can hold
	point  attribute.Set
}

// add counts an event. It allocates for the first one of a name only.
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
	// Exporters refuse a whole batch for one string that isn't UTF-8.
	key := namedKey{c, strings.ToValidUTF8(name, "\uFFFD")}
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

// forgetLast ends the last values, as the agents that had them are closed.
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
