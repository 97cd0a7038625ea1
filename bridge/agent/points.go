// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// points holds the attribute sets of an account's data points, built once.
type points struct {
	attributes []attribute.KeyValue
	agent      attribute.Set
	direction  [directions]attribute.Set
	operation  [memoryOperations]attribute.Set
	errors     [statuses]attribute.Set
	events     [ringbuf.Types]attribute.Set
}

func newPoints(set attribute.Set) points {
	p := points{attributes: set.ToSlice(), agent: set}
	for d := range p.direction {
		p.direction[d] = p.with(attribute.String(semconv.Direction, Direction(d).String()))
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

// typeCategory returns the category of a type, named as in package semconv.
func typeCategory(t ringbuf.Type) string {
	if t == ringbuf.TypeEventsDropped {
		return semconv.CategoryTelemetry
	}
	return strings.ToLower(t.Category().String())
}

// event returns the attributes for the metrics of events.
func (p *points) event(category, name string) attribute.Set {
	return p.with(attribute.String(semconv.EventCategory, category), attribute.String(semconv.EventName, name))
}

// with returns the account's attributes plus kvs.
func (p *points) with(kvs ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(slices.Concat(p.attributes, kvs)...)
}

// validName makes a name valid UTF-8. Exporters reject the whole batch if one
// string isn't.
func validName(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
