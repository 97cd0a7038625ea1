// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// model is a simple implementation of an agent's totals: it keeps every event, sorted by
// its meaning, and adds up at the end. It is based on the catalog, not on the package,
// and has its own table of types.
type model struct {
	durationBounds, sizeBounds []float64 // seconds, bytes

	events map[event][]uint64 // the values of every event, in order
	types  map[string][]uint64
	others []uint64 // errors of unknown status
	usage  *big.Int // nil if unknown
	torn   torn

	recent      []sample // the known events since the last gap, at most four
	all         []sample // the known events, with an empty one for a gap
	failures    []tally.Error
	adding      tally.Error // layout and time of the event that is being added
	throughputs map[string][]uint64
}

// sample is a known event.
type sample struct {
	name   string
	value  uint64
	micros uint64 // its time, if the ring has times
}

// event is the category and name that an event is reported as.
type event struct{ category, name string }

var knownEvents = []struct {
	name, category, legacy string // the types, by number
}{
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
	{"agent_telemetry_events_dropped", "telemetry", ""}, // layout v4 only
}

var knownCategories = []string{
	"memory", "transfer", "connection", "backend", "error", "performance", "system", "custom",
}

func newModel() *model {
	m := &model{events: map[event][]uint64{}, types: map[string][]uint64{}, throughputs: map[string][]uint64{}}
	for _, us := range []float64{
		10, 25, 50, 100, 250, 500, 1e3, 2.5e3, 5e3, 10e3, 25e3, 50e3, 100e3, 250e3, 500e3, 1e6, 5e6, 10e6,
	} {
		m.durationBounds = append(m.durationBounds, us/1e6)
	}
	for kib := 1.0; kib <= 16<<20; kib *= 4 {
		m.sizeBounds = append(m.sizeBounds, kib*1024)
	}
	return m
}

func category(c ringbuf.Category) string {
	if c < 0 || int(c) >= len(knownCategories) {
		return "unknown"
	}
	return knownCategories[c]
}

// add counts an event of a ring.
func (m *model) add(l ringbuf.Layout, e ringbuf.Event) {
	m.adding = tally.Error{Layout: l, Micros: e.TimestampMicros}
	switch l {
	case ringbuf.V1, ringbuf.V2Named:
		name, _, _ := strings.Cut(string(e.Name[:]), "\x00")
		m.named(event{category(e.Category), strings.ToValidUTF8(name, "\uFFFD")}, e.Value)
	case ringbuf.V2:
		m.typed(l, category(e.Category), e.Type, e.Value)
	case ringbuf.V3, ringbuf.V4, ringbuf.V5:
		m.typed(l, "", e.Type, e.Value)
		if l >= ringbuf.V4 {
			m.torn.add(e.Type)
		}
	}
}

// named counts an event that has a name. It is one of NIXL's own if both category and
// name are.
func (m *model) named(e event, v uint64) {
	anyCategory := false
	for _, known := range knownEvents[:20] {
		if e.name != known.name && (e.name != known.legacy || known.legacy == "") {
			continue
		}
		anyCategory = true
		if e.category == known.category {
			e.name = known.name // the same in all layouts
			m.events[e] = append(m.events[e], v)
			m.known(known.name, v)
			return
		}
	}
	m.events[e] = append(m.events[e], v)
	if e.category == "error" && !anyCategory {
		m.others = append(m.others, v)
		m.failed(math.MaxUint32)
	}
}

// typed counts an event that has a type and, in layout V2, a category.
func (m *model) typed(l ringbuf.Layout, category string, t ringbuf.Type, v uint64) {
	types := 20
	if l >= ringbuf.V4 {
		types = 21
	}
	if int(t) < types {
		known := knownEvents[t]
		if category == "" {
			category = known.category
		}
		m.events[event{category, known.name}] = append(m.events[event{category, known.name}], v)
		if category == known.category {
			m.known(known.name, v)
		}
		return
	}
	e := event{category, fmt.Sprintf("unknown_event_%d", t)}
	switch category {
	case "":
		e.category = "unknown"
	case "error":
		m.others = append(m.others, v)
		m.failed(math.MaxUint32)
	}
	m.events[e] = append(m.events[e], v)
}

func (m *model) known(name string, v uint64) {
	m.types[name] = append(m.types[name], v)
	m.all = append(m.all, sample{name, v, m.adding.Micros})
	if strings.HasPrefix(name, "agent_err_") {
		m.failed(ringbuf.Type(slices.IndexFunc(knownEvents, func(known struct{ name, category, legacy string }) bool { return known.name == name })))
	}
	m.transferred(name, v)
	if m.usage == nil {
		return
	}
	switch name {
	case "agent_memory_registered":
		m.usage.Add(m.usage, new(big.Int).SetUint64(v))
	case "agent_memory_deregistered":
		if m.usage.Sub(m.usage, new(big.Int).SetUint64(v)); m.usage.Sign() < 0 {
			m.usage = nil
		}
	}
}

// throughputBounds are the metric's bounds, in bytes per second.
var throughputBounds = []float64{1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 2e11, 4e11, 1e12}

// transferred records the throughput if the last four events belong to one transfer.
func (m *model) transferred(name string, v uint64) {
	m.recent = append(m.recent, sample{name, v, 0})
	m.recent = m.recent[max(0, len(m.recent)-4):]
	for _, d := range []string{"tx", "rx"} {
		var names []string
		for _, s := range m.recent {
			names = append(names, s.name)
		}
		if !slices.Equal(names, []string{"agent_xfer_post_time", "agent_xfer_time", "agent_" + d + "_bytes", "agent_" + d + "_requests_num"}) {
			continue
		}
		took := new(big.Int).SetUint64(max(m.recent[1].value, 1))
		bytes := new(big.Int).SetUint64(m.recent[2].value)
		perSecond := bytes.Mul(bytes, big.NewInt(1_000_000)).Quo(bytes, took)
		if !perSecond.IsUint64() {
			perSecond.SetUint64(math.MaxUint64)
		}
		m.throughputs[d] = append(m.throughputs[d], perSecond.Uint64())
	}
}

// failed records an error event.
func (m *model) failed(kind ringbuf.Type) {
	e := m.adding
	e.Type = kind
	m.failures = append(m.failures, e)
}

func (m *model) opened() { m.usage = new(big.Int) }

func (m *model) restarted() {
	m.opened()
	m.torn = torn{n: m.torn.n}
	m.recent = nil
	m.all = append(m.all, sample{})
}

func (m *model) missed() {
	m.usage, m.recent = nil, nil
	m.all = append(m.all, sample{})
}

// report returns the totals as they would be reported.
func (m *model) report() map[string]any {
	r := map[string]any{}
	direction := map[string]string{"tx": "{transmit}", "rx": "{receive}"}
	for d, attribute := range direction {
		if sizes := m.types["agent_"+d+"_bytes"]; sizes != nil {
			r["nixl.transfer.io"+attribute] = clamp(add(sizes))
			r["nixl.transfer.size"+attribute] = distributionOf(sizes, 1, m.sizeBounds)
			r["nixl.transfer.last.size"+attribute] = clamp(newest(sizes))
		}
		if throughputs := m.throughputs[d]; throughputs != nil {
			r["nixl.transfer.throughput"+attribute] = distributionOf(throughputs, 1, throughputBounds)
		}
		if requests := m.types["agent_"+d+"_requests_num"]; requests != nil {
			r["nixl.transfer.requests"+attribute] = clamp(add(requests))
			r["newest requests"+attribute] = clamp(newest(requests))
		}
	}
	for name, metric := range map[string]string{"agent_xfer_time": "duration", "agent_xfer_post_time": "post_duration"} {
		if times := m.types[name]; times != nil {
			r["nixl.transfer."+strings.ReplaceAll(metric, "_", ".")] = distributionOf(times, 1e6, m.durationBounds)
			r["nixl.transfer.last."+metric] = float64(times[len(times)-1]) / 1e6
		}
	}
	for name, attribute := range map[string]string{"registered": "register", "deregistered": "deregister"} {
		if sizes := m.types["agent_memory_"+name]; sizes != nil {
			r["nixl.memory."+name] = clamp(add(sizes))
			r["nixl.memory.last.size{"+attribute+"}"] = clamp(newest(sizes))
		}
	}
	if m.usage != nil {
		r["nixl.memory.usage"] = clamp(m.usage)
	}
	for _, known := range knownEvents[8:20] {
		r["nixl.errors{"+strings.TrimPrefix(known.name, "agent_err_")+"}"] = clamp(add(m.types[known.name]))
	}
	r["nixl.errors{_OTHER}"] = clamp(add(m.others))
	for e, values := range m.events {
		r["nixl.events{"+e.category+","+e.name+"}"] = uint64(len(values))
		switch e.category {
		case "connection", "backend", "system", "custom":
			r["nixl.event.value{"+e.category+","+e.name+"}"] = clamp(add(values))
			r["nixl.event.last_value{"+e.category+","+e.name+"}"] = clamp(newest(values))
		}
	}
	r["nixl.telemetry.events.dropped"] = clamp(add(m.types["agent_telemetry_events_dropped"]))
	r["nixl.telemetry.ring.torn_groups"] = m.torn.counted()
	return r
}

// reportOf is like [model.report], for real totals.
func reportOf(a *tally.Totals) map[string]any {
	r := map[string]any{}
	for d, attribute := range map[tally.Direction]string{tally.Transmit: "{transmit}", tally.Receive: "{receive}"} {
		if h := a.Size(d); h.Count() > 0 {
			r["nixl.transfer.io"+attribute] = h.Total().Int64()
			r["nixl.transfer.size"+attribute] = readDistribution(h)
			r["nixl.transfer.last.size"+attribute] = h.LastInt64()
		}
		if h := a.Throughput(d); h.Count() > 0 {
			r["nixl.transfer.throughput"+attribute] = readDistribution(h)
		}
		if requests := a.Requests(d); requests.Events > 0 {
			r["nixl.transfer.requests"+attribute] = requests.Sum.Int64()
			r["newest requests"+attribute] = requests.Last()
		}
	}
	if h := a.Duration(); h.Count() > 0 {
		r["nixl.transfer.duration"], r["nixl.transfer.last.duration"] = readDistribution(h), h.Last()
	}
	if h := a.PostDuration(); h.Count() > 0 {
		r["nixl.transfer.post.duration"], r["nixl.transfer.last.post_duration"] = readDistribution(h), h.Last()
	}
	if t := a.Registered(); t.Events > 0 {
		r["nixl.memory.registered"], r["nixl.memory.last.size{register}"] = t.Sum.Int64(), t.Last()
	}
	if t := a.Deregistered(); t.Events > 0 {
		r["nixl.memory.deregistered"], r["nixl.memory.last.size{deregister}"] = t.Sum.Int64(), t.Last()
	}
	if usage, known := a.MemoryUsage(); known {
		r["nixl.memory.usage"] = usage
	}
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		r["nixl.errors{"+strings.TrimPrefix(knownEvents[kind].name, "agent_err_")+"}"] = a.Errors(kind).Sum.Int64()
	}
	r["nixl.errors{_OTHER}"] = a.OtherErrors().Int64()
	a.Events(func(category, name string, n uint64) {
		key := "nixl.events{" + category + "," + name + "}"
		if _, twice := r[key]; twice {
			key += " twice"
		}
		r[key] = n
	})
	for i := range a.Series() {
		if s := &a.Series()[i]; s.Valued {
			r["nixl.event.value{"+s.Category+","+s.Name+"}"] = s.Sum.Int64()
			r["nixl.event.last_value{"+s.Category+","+s.Name+"}"] = s.Last()
		}
	}
	r["nixl.telemetry.events.dropped"] = a.Dropped().Sum.Int64()
	r["nixl.telemetry.ring.torn_groups"] = a.TornGroups()
	return r
}

// distribution is a histogram with explicit bounds.
type distribution struct {
	Count         uint64
	Sum, Min, Max float64
	Bounds        []float64
	Counts        []uint64
}

func readDistribution(h *tally.Histogram) distribution {
	return distribution{
		Count: h.Count(), Sum: h.Sum(), Min: h.Min(), Max: h.Max(),
		Bounds: h.Bounds(), Counts: append([]uint64(nil), h.Counts()...),
	}
}

func distributionOf(values []uint64, perUnit float64, bounds []float64) distribution {
	sum, _ := new(big.Float).SetInt(add(values)).Float64()
	d := distribution{
		Count: uint64(len(values)), Sum: sum / perUnit, Min: math.Inf(1),
		Bounds: bounds, Counts: make([]uint64, len(bounds)+1),
	}
	for _, v := range values {
		x := float64(v) / perUnit
		d.Min, d.Max = min(d.Min, x), max(d.Max, x)
		d.Counts[naiveBucket(x, bounds)]++
	}
	return d
}

func naiveBucket(x float64, bounds []float64) int {
	for i, bound := range bounds {
		if x <= bound {
			return i
		}
	}
	return len(bounds)
}

func add(values []uint64) *big.Int {
	sum := new(big.Int)
	for _, v := range values {
		sum.Add(sum, new(big.Int).SetUint64(v))
	}
	return sum
}

func newest(values []uint64) *big.Int { return new(big.Int).SetUint64(values[len(values)-1]) }

// clamp returns the nearest int64.
func clamp(v *big.Int) int64 {
	switch {
	case v.IsInt64():
		return v.Int64()
	case v.Sign() < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}
