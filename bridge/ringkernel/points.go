// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// points holds the attribute sets of a kernel's data points. They are built once,
// because building a set takes longer than the rest of the work for a point.
type points struct {
	attributes []attribute.KeyValue
	kernel     attribute.Set
	queues     [queues]attribute.Set
	states     [states]attribute.Set
}

func newPoints(common []attribute.KeyValue, id string) points {
	// Exporters reject the whole batch if one string isn't valid UTF-8.
	id = strings.ToValidUTF8(id, "\uFFFD")
	p := points{attributes: append(slices.Clip(common), attribute.String(semconv.KernelID, id))}
	p.kernel = attribute.NewSet(p.attributes...)
	for q := range p.queues {
		p.queues[q] = p.with(attribute.String(semconv.QueueName, Queue(q).String()))
	}
	for s := range p.states {
		p.states[s] = p.with(attribute.String(semconv.KernelState, State(s).String()))
	}
	return p
}

// with returns the kernel's attributes plus kv.
func (p *points) with(kv attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(slices.Clip(p.attributes), kv)...)
}
