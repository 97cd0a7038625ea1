// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Limits on the memory for what packets have in common. Beyond them, a packet takes
// longer to record. The number of series is limited by the MeterProvider.
const (
	routeLimit = 4096  // routeKey
	pointLimit = 16384 // data points of the routes
)

// routeKey identifies a route.
type routeKey struct {
	device, operation, worker string
	layer                     int
	attributes                attribute.Distinct
}

// route holds everything that packets with the same routeKey share. Recording a
// packet of a known route takes one lookup and no allocation.
type route struct {
	device, operation, worker string // valid in a CSV and in OTLP
	layer                     int
	attributes                []attribute.KeyValue

	head, tail []byte // the constant parts of the CSV row
	inSummary  *operation
	selection  *selection // nil unless the operation is an expert's

	known     bool // the route is stored
	ok        *series
	failed    map[string]*series            // by error type
	experts   map[string][]metric.AddOption // by expert
	fallbacks map[string][]metric.AddOption // by requested device
}

// routes looks up the routes of packets. It is not safe for concurrent use.
type routes struct {
	totals          *totals
	layerOnDuration bool
	known           map[routeKey]*route
	points          int // data points of known routes
}

func newRoutes(t *totals, layerOnDuration bool) *routes {
	return &routes{totals: t, layerOnDuration: layerOnDuration, known: make(map[routeKey]*route)}
}

// of returns the route of a packet.
func (r *routes) of(p *Packet) *route {
	key := routeKey{p.Device, p.Operation, p.Worker, p.Layer, p.Attributes.Equivalent()}
	if found, ok := r.known[key]; ok {
		return found
	}
	// Clone the strings, because they may be small parts of large ones.
	key.device = strings.Clone(key.device)
	key.operation = strings.Clone(key.operation)
	key.worker = strings.Clone(key.worker)

	n := &route{
		device: clean(key.device), operation: clean(key.operation), worker: clean(key.worker),
		layer: key.layer, attributes: p.Attributes.ToSlice(),
	}
	if n.worker == "" {
		n.worker = worker(n.operation, n.device, n.layer)
	}
	n.head = appendHead(nil, n.device, n.worker)
	n.tail = appendTail(nil, n.layer, n.operation)
	n.inSummary = r.totals.operation(n.operation)
	n.selection = r.totals.selection(n.inSummary, n.operation, n.layer)
	n.ok = r.series(n)
	if n.known = len(r.known) < routeLimit; n.known {
		r.known[key] = n
	}
	return n
}

// series returns the series of a route's successful packets or, with an errorType,
// of its failed packets.
func (r *routes) series(n *route, errorType ...attribute.KeyValue) *series {
	device := attribute.String(semconv.DeviceName, n.device)
	durations := append(errorType, device, attribute.String(semconv.Operation, n.operation))
	if r.layerOnDuration {
		durations = append(durations, attribute.Int(semconv.Layer, n.layer))
	}
	return &series{
		duration: recordIn(n.with(durations...)...),
		packets:  addTo(n.with(append(errorType, device, attribute.String(semconv.Worker, n.worker))...)...),
		memory:   recordIn(n.with(device)...),
	}
}

// with returns the attributes of the route's packets followed by attrs, which take
// precedence.
func (n *route) with(attrs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(n.attributes, attrs)
}

// failure returns the series of a route's packets that failed with an error type.
func (r *routes) failure(n *route, errorType string) *series {
	return stored(r, n, &n.failed, errorType, func(name string) *series {
		return r.series(n, attribute.String(semconv.ErrorType, name))
	})
}

// expert returns the data point for the selection of an expert, or nil for a packet
// without an expert.
func (r *routes) expert(n *route, expert string) []metric.AddOption {
	if expert == "" && n.selection == nil {
		return nil
	}
	return stored(r, n, &n.experts, expert, func(name string) []metric.AddOption {
		attrs := n.with(attribute.String(semconv.Operation, n.operation), attribute.Int(semconv.Layer, n.layer))
		if name != "" {
			attrs = append(attrs, attribute.String(semconv.Expert, name))
		}
		return addTo(attrs...)
	})
}

// fallback returns the data point for packets that ran on another device than
// requested.
func (r *routes) fallback(n *route, requested string) []metric.AddOption {
	return stored(r, n, &n.fallbacks, requested, func(name string) []metric.AddOption {
		return addTo(n.with(attribute.String(semconv.DeviceName, n.device), attribute.String(semconv.DeviceRequestedName, name))...)
	})
}

// stored returns the value of a key of a route. If there is none, it creates and stores
// one, unless there are too many.
func stored[V any](r *routes, n *route, values *map[string]V, key string, create func(name string) V) V {
	if v, ok := (*values)[key]; ok {
		return v
	}
	v := create(clean(strings.Clone(key)))
	if n.known && r.points < pointLimit {
		r.points++
		if *values == nil {
			*values = make(map[string]V)
		}
		(*values)[strings.Clone(key)] = v
	}
	return v
}
