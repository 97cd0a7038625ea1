package session

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Limits on what a session remembers, and with it on the number of its series.
const (
	routeLimit     = 4096 // device, operation, layer
	deviceLimit    = 32
	fallbackLimit  = 128 // device asked for, device used
	errorTypeLimit = 64
	failureLimit   = 4096 // route, type of error
)

type routeKey struct {
	device, operation string
	layer             int
}

// route is all that packets of one device, operation and layer have in common,
// so that a packet costs one look-up and nothing is made anew for it.
type route struct {
	key        routeKey // fit for a CSV and for OTLP
	worker     string
	head, tail []byte // the fields of the row that are always the same
	operation  *operation
	selection  *selection

	ok     *series
	failed map[string]*series // by type of error

	knownDevice, knownOperation, remembered bool
}

// routes finds the route of a packet. It is not safe for concurrent use.
type routes struct {
	totals          *totals
	layerOnDuration bool

	known      map[routeKey]*route
	devices    map[string]struct{}
	errorTypes map[string]struct{}
	fallbacks  map[[2]string][]metric.AddOption
	failures   int
}

func newRoutes(t *totals, layerOnDuration bool) *routes {
	return &routes{
		totals: t, layerOnDuration: layerOnDuration,
		known:      make(map[routeKey]*route),
		devices:    make(map[string]struct{}),
		errorTypes: make(map[string]struct{}),
		fallbacks:  make(map[[2]string][]metric.AddOption),
	}
}

// of is the route of a packet.
func (r *routes) of(p *Packet) *route {
	key := routeKey{p.Device, p.Operation, p.Layer}
	if found, ok := r.known[key]; ok {
		return found
	}
	return r.add(key)
}

// add makes a route, and remembers it unless it is past one of the limits.
func (r *routes) add(key routeKey) *route {
	// A copy, as the packet's strings may be small parts of large ones.
	key.device = strings.Clone(key.device)
	key.operation = strings.Clone(key.operation)
	clean := routeKey{clean(key.device), clean(key.operation), key.layer}

	n := &route{key: clean, worker: worker(clean.operation, clean.device, clean.layer)}
	n.head = appendHead(nil, clean.device, n.worker)
	n.tail = appendTail(nil, clean.layer, clean.operation)
	n.operation, n.knownOperation = r.totals.operation(clean.operation)
	n.selection = r.totals.selection(n.operation, clean.operation, clean.layer)
	n.knownDevice = remember(r.devices, clean.device, deviceLimit)
	n.remembered = n.knownOperation && n.knownDevice && len(r.known) < routeLimit
	n.ok = r.series(n, nil)
	if n.remembered {
		r.known[key] = n
	}
	return n
}

// series makes the data points of a route's packets, of those that succeeded
// or, with an error.type, of those that failed.
func (r *routes) series(n *route, errorType []attribute.KeyValue) *series {
	var (
		device    = attribute.String(semconv.Device, n.key.device)
		operation = attribute.String(semconv.Operation, n.key.operation)
		layer     = attribute.Int(semconv.Layer, n.key.layer)
		worker    = attribute.String(semconv.Worker, n.worker)
	)
	s := &series{duration: recordIn(past), packets: addTo(past), memory: recordIn(past)}
	if n.knownDevice {
		s.memory = recordIn(device)
	}
	switch {
	case !n.knownDevice, !n.knownOperation:
	case !r.layerOnDuration:
		s.duration = recordIn(append(errorType, device, operation)...)
	case n.remembered:
		s.duration = recordIn(append(errorType, device, operation, layer)...)
	}
	if n.remembered {
		s.packets = addTo(append(errorType, device, worker)...)
	}
	if isExpert(n.key.operation) {
		s.experts = addTo(past)
		if n.remembered {
			s.experts = addTo(operation, layer)
		}
	}
	return s
}

// failure is the series of a route's packets that failed in one way.
func (r *routes) failure(n *route, errorType string) *series {
	if s, ok := n.failed[errorType]; ok {
		return s
	}
	name := clean(errorType)
	if name != overflowName && !remember(r.errorTypes, name, errorTypeLimit) {
		return r.failure(n, overflowName)
	}
	s := r.series(n, []attribute.KeyValue{attribute.String(semconv.ErrorType, name)})
	if !n.remembered || r.failures >= failureLimit {
		s.duration, s.packets = recordIn(past), addTo(past)
		return s
	}
	r.failures++
	if n.failed == nil {
		n.failed = make(map[string]*series)
	}
	n.failed[strings.Clone(errorType)] = s
	return s
}

// fallback is the data point of packets that ran on another device than the
// one asked for.
func (r *routes) fallback(asked, used string) []metric.AddOption {
	key := [2]string{asked, used}
	if opts, ok := r.fallbacks[key]; ok {
		return opts
	}
	if len(r.fallbacks) >= fallbackLimit {
		return addTo(past)
	}
	key = [2]string{strings.Clone(asked), strings.Clone(used)}
	opts := addTo(
		attribute.String(semconv.Device, clean(asked)),
		attribute.String(semconv.DeviceUsed, clean(used)))
	r.fallbacks[key] = opts
	return opts
}

// remember reports whether a name is one of the first limit names.
func remember(names map[string]struct{}, name string, limit int) bool {
	if _, ok := names[name]; ok {
		return true
	}
	if len(names) >= limit {
		return false
	}
	names[strings.Clone(name)] = struct{}{}
	return true
}
