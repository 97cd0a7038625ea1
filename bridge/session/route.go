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

// Limits on a session's memory, and so on the number of its series.
const (
	routeLimit      = 4096 // routeKey
	deviceLimit     = 32
	attributesLimit = 64    // sets of Packet.Attributes
	fallbackLimit   = 128   // fallbackKey
	expertLimit     = 16384 // route, expert
	errorTypeLimit  = 64
	failureLimit    = 4096 // route, error type
)

// routeKey identifies a route.
type routeKey struct {
	device, operation, worker string
	layer                     int
	attributes                attribute.Distinct
}

type fallbackKey struct {
	requested, used string
	attributes      attribute.Distinct
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

	ok      *series
	failed  map[string]*series            // by error type
	experts map[string][]metric.AddOption // by expert

	// These report whether the route is within the limits; remembered implies the
	// others.
	knownDevice, knownOperation, knownAttributes, remembered bool
}

// routes looks up the routes of packets. It is not safe for concurrent use.
type routes struct {
	totals          *totals
	layerOnDuration bool

	known      map[routeKey]*route
	devices    map[string]struct{}
	attributes map[attribute.Distinct]struct{}
	errorTypes map[string]struct{}
	fallbacks  map[fallbackKey][]metric.AddOption

	failures, experts int
}

func newRoutes(t *totals, layerOnDuration bool) *routes {
	return &routes{
		totals: t, layerOnDuration: layerOnDuration,
		known:      make(map[routeKey]*route),
		devices:    make(map[string]struct{}),
		attributes: make(map[attribute.Distinct]struct{}),
		errorTypes: make(map[string]struct{}),
		fallbacks:  make(map[fallbackKey][]metric.AddOption),
	}
}

// of returns the route of a packet.
func (r *routes) of(p *Packet) *route {
	key := routeKey{p.Device, p.Operation, p.Worker, p.Layer, p.Attributes.Equivalent()}
	if found, ok := r.known[key]; ok {
		return found
	}
	return r.add(key, p.Attributes.ToSlice())
}

// add creates a route, and stores it unless it is beyond one of the limits.
func (r *routes) add(key routeKey, attributes []attribute.KeyValue) *route {
	// Clone the strings, because they may be small parts of large ones.
	key.device = strings.Clone(key.device)
	key.operation = strings.Clone(key.operation)
	key.worker = strings.Clone(key.worker)

	n := &route{
		device: clean(key.device), operation: clean(key.operation), worker: clean(key.worker),
		layer: key.layer, attributes: attributes,
	}
	if n.worker == "" {
		n.worker = worker(n.operation, n.device, n.layer)
	}
	n.head = appendHead(nil, n.device, n.worker)
	n.tail = appendTail(nil, n.layer, n.operation)
	n.inSummary, n.knownOperation = r.totals.operation(n.operation)
	n.selection = r.totals.selection(n.inSummary, n.operation, n.layer)
	n.knownDevice = remember(r.devices, n.device, deviceLimit)
	n.knownAttributes = remember(r.attributes, key.attributes, attributesLimit)
	n.remembered = n.knownOperation && n.knownDevice && n.knownAttributes && len(r.known) < routeLimit
	n.ok = r.series(n)
	if n.remembered {
		r.known[key] = n
	}
	return n
}

// series returns the series of a route's successful packets or, with an errorType,
// of its failed packets.
func (r *routes) series(n *route, errorType ...attribute.KeyValue) *series {
	var (
		device    = attribute.String(semconv.DeviceName, n.device)
		worker    = attribute.String(semconv.Worker, n.worker)
		operation = attribute.String(semconv.Operation, n.operation)
		layer     = attribute.Int(semconv.Layer, n.layer)
	)
	s := &series{duration: recordIn(overflow), packets: addTo(overflow), memory: recordIn(overflow)}
	if n.knownDevice && n.knownAttributes {
		s.memory = recordIn(n.with(device)...)
	}
	if n.remembered {
		s.packets = addTo(n.with(append(errorType, device, worker)...)...)
	}
	switch {
	case !n.knownDevice, !n.knownOperation, !n.knownAttributes:
	case !r.layerOnDuration:
		s.duration = recordIn(n.with(append(errorType, device, operation)...)...)
	case n.remembered:
		s.duration = recordIn(n.with(append(errorType, device, operation, layer)...)...)
	}
	return s
}

// with returns the attributes of the route's packets followed by attrs, which take
// precedence.
func (n *route) with(attrs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(n.attributes, attrs)
}

// failure returns the series of a route's packets that failed with an error type.
func (r *routes) failure(n *route, errorType string) *series {
	if s, ok := n.failed[errorType]; ok {
		return s
	}
	name := clean(errorType)
	if name != overflowName && !remember(r.errorTypes, name, errorTypeLimit) {
		return r.failure(n, overflowName)
	}
	s := r.series(n, attribute.String(semconv.ErrorType, name))
	if !n.remembered || r.failures >= failureLimit {
		s.duration, s.packets = recordIn(overflow), addTo(overflow)
		return s
	}
	r.failures++
	if n.failed == nil {
		n.failed = make(map[string]*series)
	}
	n.failed[strings.Clone(errorType)] = s
	return s
}

// expert returns the data point for the selection of an expert, or nil for a packet
// without an expert.
func (r *routes) expert(n *route, expert string) []metric.AddOption {
	if expert == "" && n.selection == nil {
		return nil
	}
	if opts, ok := n.experts[expert]; ok {
		return opts
	}
	if !n.remembered || r.experts >= expertLimit {
		return addTo(overflow)
	}
	attrs := n.with(attribute.String(semconv.Operation, n.operation), attribute.Int(semconv.Layer, n.layer))
	if expert != "" {
		attrs = append(attrs, attribute.String(semconv.Expert, clean(expert)))
	}
	r.experts++
	if n.experts == nil {
		n.experts = make(map[string][]metric.AddOption)
	}
	opts := addTo(attrs...)
	n.experts[strings.Clone(expert)] = opts
	return opts
}

// fallback returns the data point for packets that ran on another device than
// requested.
func (r *routes) fallback(n *route, p *Packet) []metric.AddOption {
	key := fallbackKey{p.DeviceTarget, p.Device, p.Attributes.Equivalent()}
	if opts, ok := r.fallbacks[key]; ok {
		return opts
	}
	if !n.knownAttributes || len(r.fallbacks) >= fallbackLimit {
		return addTo(overflow)
	}
	key.requested, key.used = strings.Clone(p.DeviceTarget), strings.Clone(p.Device)
	opts := addTo(n.with(
		attribute.String(semconv.DeviceName, n.device),
		attribute.String(semconv.DeviceRequestedName, clean(p.DeviceTarget)))...)
	r.fallbacks[key] = opts
	return opts
}

// remember reports whether a name is one of the first limit names.
func remember[K comparable](names map[K]struct{}, name K, limit int) bool {
	if _, ok := names[name]; ok {
		return true
	}
	if len(names) >= limit {
		return false
	}
	names[name] = struct{}{}
	return true
}
