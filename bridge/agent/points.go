package agent

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// points are the attributes of an agent's data points, made once: making
// a set takes longer than observing with it.
type points struct {
	attributes      []attribute.KeyValue
	agent           metric.ObserveOption
	direction       [directions]metric.ObserveOption
	operation       [memoryOperations]metric.ObserveOption
	errors          [statuses]metric.ObserveOption
	events          [ringbuf.Types]metric.ObserveOption
	record          []metric.RecordOption
	recordDirection [directions][]metric.RecordOption
}

// commonAttributes are those that all points of an agent have.
func commonAttributes(c *config, name string) []attribute.KeyValue {
	if c.nameInResource {
		return c.attributes
	}
	return append(slices.Clip(c.attributes), attribute.String(semconv.AgentName, validName(name)))
}

func newPoints(attributes []attribute.KeyValue) points {
	p := points{attributes: attributes}
	p.agent = p.with()
	p.record = []metric.RecordOption{metric.WithAttributeSet(p.set())}
	for d := range p.direction {
		direction := attribute.String(semconv.Direction, Direction(d).String())
		p.direction[d] = p.with(direction)
		p.recordDirection[d] = []metric.RecordOption{metric.WithAttributeSet(p.set(direction))}
	}
	for op := range p.operation {
		p.operation[op] = p.with(attribute.String(semconv.MemoryOperation, operationNames[op]))
	}
	for s := range p.errors {
		p.errors[s] = p.with(attribute.String(semconv.ErrorType, Status(s).String()))
	}
	for i := range p.events {
		t := ringbuf.Type(i)
		p.events[i] = p.event(typeCategory(t), t.String())
	}
	return p
}

// typeCategory is the catalogue's name of the category of a type.
func typeCategory(t ringbuf.Type) string {
	if t == ringbuf.TypeEventsDropped {
		return semconv.CategoryTelemetry
	}
	return strings.ToLower(t.Category().String())
}

// event is the attributes of a point of nixl.events and its like.
func (p *points) event(category, name string) metric.ObserveOption {
	return p.with(attribute.String(semconv.EventCategory, category), attribute.String(semconv.EventName, name))
}

// with is the agent's attributes and some more.
func (p *points) with(kvs ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(p.set(kvs...))
}

func (p *points) set(kvs ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(slices.Clip(p.attributes), kvs...)...)
}

// validName makes a name fit for OTLP: exporters refuse a whole batch for one
// string that isn't UTF-8.
func validName(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
