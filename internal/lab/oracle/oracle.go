// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle computes the metrics of an agent's events in the most obvious way: it takes
// one event at a time and adds up big integers. It is based on the catalog and has its
// own table of types. Tests of all packages compare with it, so it shares no code with
// package tally.
//
// # Order of files
//
// oracle.go: the events; points.go: their metrics; torn.go: transfers with missing events.
package oracle

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Oracle adds up the events of an agent.
type Oracle struct {
	// Bounds of the histograms, in seconds, bytes and bytes per second. They must not
	// change after the first event.
	DurationBounds, SizeBounds, ThroughputBounds []float64

	// Transfer is called with the post time, the time, the size and the requests of each
	// transfer whose events were written in a row, and with its direction: tx or rx.
	Transfer func(events []Event, direction string)
	// Failure is called with each error.
	Failure func(Failure)

	byName      map[name]*values
	known       map[string]*values // by NIXL's name
	others      values             // errors of unknown status
	throughputs map[string]*values // by direction: tx or rx
	usage       *big.Int           // registered memory; nil if unknown
	group       []Event            // the last known events in a row, at most four
	torn        Torn
}

// values adds up values.
type values struct {
	count   uint64
	sum     big.Int
	last    uint64
	spread  *Distribution // nil without a histogram
	perUnit float64       // what divides values to get the unit of the histogram
}

func (v *values) add(value uint64) {
	v.count++
	v.sum.Add(&v.sum, new(big.Int).SetUint64(value))
	v.last = value
	if v.spread != nil {
		v.spread.observe(float64(value) / v.perUnit)
	}
}

// Event is an event that NIXL writes itself.
type Event struct {
	Name   string // in the newest release: agent_tx_bytes
	Value  uint64
	Micros uint64 // its time, if the ring has times
}

// Failure is an event of an error.
type Failure struct {
	Layout ringbuf.Layout
	Type   ringbuf.Type // math.MaxUint32 if unknown
	Micros uint64
}

// name is the category and the name that an event is reported as.
type name struct{ category, name string }

// knownEvents are NIXL's own events, by type.
var knownEvents = []struct{ name, category, legacy string }{
	{"agent_tx_bytes", "transfer", ""},
	{"agent_rx_bytes", "transfer", ""},
	{"agent_tx_requests_num", "transfer", ""},
	{"agent_rx_requests_num", "transfer", ""},
	{"agent_memory_registered", "memory", ""},
	{"agent_memory_deregistered", "memory", ""},
	{"agent_xfer_time", "performance", ""},
	{"agent_xfer_post_time", "performance", ""},
	{"agent_err_not_posted", "error", "NIXL_ERR_NOT_POSTED"},
	{"agent_err_invalid_param", "error", "NIXL_ERR_INVALID_PARAM"},
	{"agent_err_backend", "error", "NIXL_ERR_BACKEND"},
	{"agent_err_not_found", "error", "NIXL_ERR_NOT_FOUND"},
	{"agent_err_mismatch", "error", "NIXL_ERR_MISMATCH"},
	{"agent_err_not_allowed", "error", "NIXL_ERR_NOT_ALLOWED"},
	{"agent_err_repost_active", "error", "NIXL_ERR_REPOST_ACTIVE"},
	{"agent_err_unknown", "error", "NIXL_ERR_UNKNOWN"},
	{"agent_err_not_supported", "error", "NIXL_ERR_NOT_SUPPORTED"},
	{"agent_err_remote_disconnect", "error", "NIXL_ERR_REMOTE_DISCONNECT"},
	{"agent_err_canceled", "error", "NIXL_ERR_CANCELED"},
	{"agent_err_no_telemetry", "error", "NIXL_ERR_NO_TELEMETRY"},
	{"agent_telemetry_events_dropped", "telemetry", ""}, // since layout v4
}

// typesBefore4 is the number of types before layout v4.
const typesBefore4 = 20

var categories = []string{"memory", "transfer", "connection", "backend", "error", "performance", "system", "custom"}

// New returns an Oracle of an agent whose earlier events are unknown, with the bounds of the
// catalog.
func New() *Oracle {
	o := &Oracle{
		ThroughputBounds: semconv.TransferThroughput.Bounds,
		byName:           make(map[name]*values), known: make(map[string]*values), throughputs: make(map[string]*values),
	}
	for _, us := range []float64{ // those of NIXL's own exporter
		10, 25, 50, 100, 250, 500, 1e3, 2.5e3, 5e3, 10e3, 25e3, 50e3, 100e3, 250e3, 500e3, 1e6, 5e6, 10e6,
	} {
		o.DurationBounds = append(o.DurationBounds, us/perSecond)
	}
	for kib := 1.0; kib <= 16<<20; kib *= 4 {
		o.SizeBounds = append(o.SizeBounds, kib*1024)
	}
	return o
}

const perSecond = 1e6 // the unit of times

// Opened states that the following events are the agent's first.
func (o *Oracle) Opened() { o.usage = new(big.Int) }

// Restarted states that a new process of the agent writes the following events.
func (o *Oracle) Restarted() {
	o.Opened()
	o.torn = Torn{n: o.torn.n}
	o.group = nil
}

// Missed states that events are missing.
func (o *Oracle) Missed() {
	o.usage = nil
	o.torn.skip()
	o.group = nil
}

// Add adds an event of a ring.
func (o *Oracle) Add(l ringbuf.Layout, e ringbuf.Event) {
	as := Failure{Layout: l, Micros: e.TimestampMicros}
	switch l {
	case ringbuf.V1:
		text, _, _ := strings.Cut(string(e.Name[:]), "\x00")
		o.addNamed(as, name{category(e.Category), strings.ToValidUTF8(text, "\uFFFD")}, e.Value)
	case ringbuf.V2:
		o.addTyped(as, category(e.Category), e.Type, e.Value)
	case ringbuf.V3, ringbuf.V4:
		o.addTyped(as, "", e.Type, e.Value)
		if l >= ringbuf.V4 {
			o.torn.Add(e.Type)
		}
	}
}

func category(c ringbuf.Category) string {
	if c < 0 || int(c) >= len(categories) {
		return "unknown"
	}
	return categories[c]
}

// typeOf returns the type of NIXL's event with a category and any of its names.
func typeOf(n name) (kind ringbuf.Type, sameName bool) {
	for i, known := range knownEvents[:typesBefore4] {
		if n.name == known.name || known.legacy != "" && n.name == known.legacy {
			if sameName = true; n.category == known.category {
				return ringbuf.Type(i), true
			}
		}
	}
	return math.MaxUint32, sameName
}

// Name returns the name that an event is reported as: the same in all layouts.
func Name(category, text string) string {
	if kind, _ := typeOf(name{category, text}); kind != math.MaxUint32 {
		return knownEvents[kind].name
	}
	return text
}

// addNamed adds an event that has a name. It is NIXL's own if both category and name are.
func (o *Oracle) addNamed(as Failure, n name, v uint64) {
	kind, sameName := typeOf(n)
	if kind != math.MaxUint32 {
		n.name = knownEvents[kind].name
		o.addKnown(as, kind, v)
	}
	o.named(n, v)
	if n.category == "error" && !sameName {
		o.addOther(as, v)
	}
}

// addTyped adds an event that has a type and, in layout v2, a category.
func (o *Oracle) addTyped(as Failure, category string, kind ringbuf.Type, v uint64) {
	types := typesBefore4
	if as.Layout >= ringbuf.V4 {
		types = len(knownEvents)
	}
	n := name{category, fmt.Sprintf("unknown_event_%d", kind)}
	switch {
	case int(kind) < types:
		known := knownEvents[kind]
		if n.name = known.name; category == "" {
			n.category = known.category
		}
		if n.category == known.category {
			o.addKnown(as, kind, v)
		}
	case category == "":
		n.category = "unknown"
	case category == "error":
		o.addOther(as, v)
	}
	o.named(n, v)
}

// named adds a value under the name that an event is reported as.
func (o *Oracle) named(n name, v uint64) {
	if o.byName[n] == nil {
		o.byName[n] = new(values)
	}
	o.byName[n].add(v)
}

// addOther adds an error of unknown status.
func (o *Oracle) addOther(as Failure, v uint64) {
	o.others.add(v)
	as.Type = math.MaxUint32
	o.fail(as)
}

func (o *Oracle) fail(as Failure) {
	if o.Failure != nil {
		o.Failure(as)
	}
}

func (o *Oracle) addKnown(as Failure, kind ringbuf.Type, v uint64) {
	text := knownEvents[kind].name
	if o.known[text] == nil {
		o.known[text] = o.newValues(text)
	}
	o.known[text].add(v)
	if knownEvents[kind].category == "error" {
		as.Type = kind
		o.fail(as)
	}
	o.addToGroup(Event{text, v, as.Micros})
	if o.usage == nil {
		return
	}
	switch text {
	case "agent_memory_registered":
		o.usage.Add(o.usage, new(big.Int).SetUint64(v))
	case "agent_memory_deregistered": // an agent never deregisters more than it has registered
		if o.usage.Sub(o.usage, new(big.Int).SetUint64(v)); o.usage.Sign() < 0 {
			o.usage = nil
		}
	}
}

// newValues returns the values of one of NIXL's events, before the first one.
func (o *Oracle) newValues(event string) *values {
	switch event {
	case "agent_tx_bytes", "agent_rx_bytes":
		return &values{spread: newDistribution(o.SizeBounds), perUnit: 1}
	case "agent_xfer_time", "agent_xfer_post_time":
		return &values{spread: newDistribution(o.DurationBounds), perUnit: perSecond}
	default:
		return new(values)
	}
}

// addToGroup adds an event to the last ones, and counts the transfer that it completes.
func (o *Oracle) addToGroup(e Event) {
	o.group = append(o.group, e)
	if len(o.group) > 4 {
		o.group = o.group[1:]
	}
	for _, d := range []string{"tx", "rx"} {
		whole := []string{"agent_xfer_post_time", "agent_xfer_time", "agent_" + d + "_bytes", "agent_" + d + "_requests_num"}
		if !slices.EqualFunc(o.group, whole, func(e Event, name string) bool { return e.Name == name }) {
			continue
		}
		if o.throughputs[d] == nil {
			o.throughputs[d] = &values{spread: newDistribution(o.ThroughputBounds), perUnit: 1}
		}
		o.throughputs[d].add(throughput(o.group[2].Value, o.group[1].Value))
		if o.Transfer != nil {
			o.Transfer(slices.Clone(o.group), d)
		}
	}
}

// ByName calls yield with the number and the sum of the events of each name. Sums wrap.
func (o *Oracle) ByName(yield func(category, name string, count, sum uint64)) {
	for n, v := range o.byName {
		yield(n.category, n.name, v.count, new(big.Int).And(&v.sum, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
	}
}

// throughput returns bytes per second, rounded down.
func throughput(bytes, micros uint64) uint64 {
	v := new(big.Int).SetUint64(bytes)
	v.Mul(v, big.NewInt(perSecond)).Quo(v, new(big.Int).SetUint64(max(micros, 1)))
	if !v.IsUint64() {
		return math.MaxUint64
	}
	return v.Uint64()
}
