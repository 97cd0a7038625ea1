// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// expected computes what the receiver must report of a ring from the JSON next to it.
// It shares no code with the receiver: names are literals, sums are big integers, and
// buckets count one value at a time.
type expected struct {
	version int32
	values  map[string][]uint64 // of known events, by their newest name in NIXL
	points  map[string]any
	usage   *big.Int // registered memory
	missed  bool     // whether registrations were missed, so that the usage is unknown
	known   []sample // the known events
}

// sample is a known event, and the size class of its transfer if the transfer is
// complete.
type sample struct {
	name  string
	value uint64
	class string
}

func readEvents(c *ringtest.Case) *expected {
	e := &expected{version: c.Version, values: make(map[string][]uint64), points: make(map[string]any), usage: new(big.Int), missed: c.ReadPos != 0}
	for i := range c.Pending {
		e.event(&c.Pending[i])
	}
	return e
}

func expect(c *ringtest.Case) map[string]any {
	e := readEvents(c)
	e.transfers()
	e.memory()
	for _, status := range statuses {
		e.sum("nixl.errors{error.type="+status+"}", e.values["agent_err_"+status])
	}
	if other := e.values["other"]; len(other) > 0 {
		e.sum("nixl.errors{error.type=_OTHER}", other)
	}
	e.sum("nixl.telemetry.events.dropped", e.values["agent_telemetry_events_dropped"])
	e.ring(c)
	return e.points
}

var statuses = []string{
	"not_posted", "invalid_param", "backend", "not_found", "mismatch", "not_allowed", "repost_active",
	"unknown", "not_supported", "remote_disconnect", "canceled", "no_telemetry",
}

var categories = map[int32]string{
	0: "memory", 1: "transfer", 2: "connection", 3: "backend", 4: "error", 5: "performance", 6: "system", 7: "custom",
}

// categoryOf returns the category of a known event.
func categoryOf(name string) string {
	switch {
	case strings.HasPrefix(name, "agent_err_"):
		return "error"
	case strings.HasPrefix(name, "agent_memory_"):
		return "memory"
	case strings.HasPrefix(name, "agent_xfer_"):
		return "performance"
	case name == "agent_telemetry_events_dropped":
		return "telemetry"
	default:
		return "transfer"
	}
}

// event counts one event and adds its value.
func (e *expected) event(ev *ringtest.Event) {
	name, category := ev.Name, "unknown"
	if ev.Category != nil && categories[*ev.Category] != "" {
		category = categories[*ev.Category]
	}
	if ev.Type != nil {
		if name == "unknown_event" {
			name = fmt.Sprintf("unknown_event_%d", *ev.Type)
		} else {
			category = categoryOf(name)
		}
	}
	// An error has the same name in all layouts.
	if status, ok := strings.CutPrefix(name, "NIXL_ERR_"); ok && category == "error" {
		name = "agent_err_" + strings.ToLower(status)
	}
	key := "{nixl.event.category=" + category + ",nixl.event.name=" + name + "}"
	count, _ := e.points["nixl.events"+key].(int64)
	e.points["nixl.events"+key] = count + 1

	switch {
	case strings.HasPrefix(name, "agent_") && category == categoryOf(name):
		e.values[name] = append(e.values[name], ev.Value)
		e.use(name, ev.Value)
		e.follow(name, ev.Value)
	case category == "error":
		e.values["other"] = append(e.values["other"], ev.Value)
	case category == "connection" || category == "backend" || category == "system" || category == "custom":
		e.values[key] = append(e.values[key], ev.Value)
		e.sum("nixl.event.value"+key, e.values[key])
		e.points["nixl.event.last_value"+key] = clamp(new(big.Int).SetUint64(ev.Value))
	}
}

// use updates the registered memory. An agent that deregisters more than it has
// registered registered some before the first event.
func (e *expected) use(name string, value uint64) {
	switch name {
	case "agent_memory_registered":
		e.usage.Add(e.usage, new(big.Int).SetUint64(value))
	case "agent_memory_deregistered":
		e.usage.Sub(e.usage, new(big.Int).SetUint64(value))
		e.missed = e.missed || e.usage.Sign() < 0
	}
}

// follow finds the four consecutive events of a transfer and computes its throughput.
func (e *expected) follow(name string, value uint64) {
	e.known = append(e.known, sample{name: name, value: value})
	if len(e.known) < 4 {
		return
	}
	r := e.known[len(e.known)-4:]
	d := strings.TrimSuffix(strings.TrimPrefix(r[2].name, "agent_"), "_bytes")
	if r[0].name != "agent_xfer_post_time" || r[1].name != "agent_xfer_time" ||
		d != "tx" && d != "rx" || r[3].name != "agent_"+d+"_requests_num" {
		return
	}
	class := "gt_16MiB"
	for name, most := range map[string]uint64{"le_16MiB": 1 << 24, "le_1MiB": 1 << 20, "le_64KiB": 1 << 16} {
		if r[2].value <= most && (r[2].value > most>>4 || most == 1<<16) {
			class = name
		}
	}
	r[0].class, r[1].class = class, class
	v := new(big.Int).SetUint64(r[2].value)
	v.Mul(v, big.NewInt(1e6)).Div(v, new(big.Int).SetUint64(max(r[1].value, 1)))
	if !v.IsUint64() {
		v.SetUint64(math.MaxUint64)
	}
	e.values["throughput "+d] = append(e.values["throughput "+d], v.Uint64())
}

// classes returns the histograms of durations by size class. Durations of transfers
// with missing events have no class, except for the last transfer, which may not be
// complete yet.
func (e *expected) classes() map[string]any {
	open := len(e.known)
	place := map[string]int{"agent_xfer_post_time": 1, "agent_xfer_time": 2, "agent_tx_bytes": 3, "agent_rx_bytes": 3}
	for next := 4; open > 0 && place[e.known[open-1].name] > 0 && place[e.known[open-1].name] < next; open-- {
		next = place[e.known[open-1].name]
	}
	values := make(map[string][]uint64)
	for _, s := range e.known[:open] {
		metric := map[string]string{"agent_xfer_time": "nixl.transfer.duration", "agent_xfer_post_time": "nixl.transfer.post.duration"}[s.name]
		if metric != "" && s.class != "" {
			metric += "{nixl.transfer.size_class=" + s.class + "}"
		}
		values[metric] = append(values[metric], s.value)
	}
	delete(values, "")
	e.points = make(map[string]any)
	for metric, list := range values {
		e.distribution(metric, list, durationBounds, 1e6)
	}
	return e.points
}

func (e *expected) transfers() {
	for direction, d := range map[string]string{"transmit": "tx", "receive": "rx"} {
		key := "{nixl.transfer.direction=" + direction + "}"
		if sizes := e.values["agent_"+d+"_bytes"]; len(sizes) > 0 {
			e.sum("nixl.transfer.io"+key, sizes)
			e.points["nixl.transfer.last.size"+key] = clamp(new(big.Int).SetUint64(sizes[len(sizes)-1]))
			var bounds []float64
			for b := 1024.0; b <= 16<<30; b *= 4 {
				bounds = append(bounds, b)
			}
			e.distribution("nixl.transfer.size"+key, sizes, bounds, 1)
		}
		if throughputs := e.values["throughput "+d]; len(throughputs) > 0 {
			e.distribution("nixl.transfer.throughput"+key, throughputs, throughputBounds, 1)
		}
		if requests := e.values["agent_"+d+"_requests_num"]; len(requests) > 0 {
			e.sum("nixl.transfer.requests"+key, requests)
		}
	}
	for name, metrics := range map[string][2]string{
		"agent_xfer_time":      {"nixl.transfer.duration", "nixl.transfer.last.duration"},
		"agent_xfer_post_time": {"nixl.transfer.post.duration", "nixl.transfer.last.post_duration"},
	} {
		if times := e.values[name]; len(times) > 0 {
			e.distribution(metrics[0], times, durationBounds, 1e6)
			e.points[metrics[1]] = float64(times[len(times)-1]) / 1e6
		}
	}
}

// durationBounds are the bounds of NIXL's own exporter, in microseconds.
var durationBounds = []float64{
	10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1e6, 5e6, 10e6,
}

// throughputBounds are in bytes per second.
var throughputBounds = []float64{1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 2e11, 4e11, 1e12}

func (e *expected) memory() {
	registered, deregistered := e.values["agent_memory_registered"], e.values["agent_memory_deregistered"]
	for operation, sizes := range map[string][]uint64{"register": registered, "deregister": deregistered} {
		if len(sizes) > 0 {
			e.sum("nixl.memory."+operation+"ed", sizes)
			e.points["nixl.memory.last.size{nixl.memory.operation="+operation+"}"] = clamp(new(big.Int).SetUint64(sizes[len(sizes)-1]))
		}
	}
	if len(registered)+len(deregistered) > 0 && !e.missed {
		e.points["nixl.memory.usage"] = clamp(e.usage)
	}
}

// ring computes the metrics of the ring itself.
func (e *expected) ring(c *ringtest.Case) {
	const metric = "nixl.telemetry.ring."
	pending := len(c.Pending)
	e.points[metric+"capacity"] = int64(c.Capacity)
	e.points[metric+"utilization"] = float64(pending) / float64(c.Capacity-1)
	e.points[metric+"saturations"] = int64(pending / (int(c.Capacity) - 1))
	e.points[metric+"restarts"], e.points[metric+"lossy_restarts"], e.points[metric+"foreign_reads"] = int64(0), int64(0), int64(0)
	if c.Version == 4 {
		e.points[metric+"torn_groups"] = torn(c.Pending)
	}
}

// torn returns how many transfers lack an event. A transfer is a run of events of one
// direction in the order post time, transfer time, bytes, requests. Types that the
// agent hasn't written for the direction yet may be missing, because an agent can be
// configured to omit them. An earlier reader may have taken the beginning of the first
// run, and the last run may continue later.
func torn(events []ringtest.Event) (n int64) {
	place := map[string]int{
		"agent_xfer_post_time": 1, "agent_xfer_time": 2,
		"agent_tx_bytes": 3, "agent_rx_bytes": 3, "agent_tx_requests_num": 4, "agent_rx_requests_num": 4,
	}
	var run []string
	whole := true // whether the run has its beginning
	written := map[string]bool{}
	end := func() {
		if len(run) > 0 && whole && lacks(run, written, "agent_tx") && lacks(run, written, "agent_rx") {
			n++
		}
		run, whole = nil, true
	}
	for i := range events {
		name := events[i].Name
		if len(run) > 0 {
			last := run[len(run)-1]
			crossed := place[last] == 3 && place[name] == 4 && last[:8] != name[:8]
			if name != "unknown_event" && place[name] <= place[last] || crossed {
				end()
			}
		}
		if place[name] == 0 {
			whole = whole || name != "unknown_event"
			continue
		}
		if len(run) == 0 && i == 0 {
			whole = place[name] == 1
		}
		run = append(run, name)
		written[name] = true
		if place[name] == 4 {
			end()
		}
	}
	return n
}

// lacks reports whether events are missing from the run of a transfer.
func lacks(run []string, written map[string]bool, direction string) bool {
	ofIt := func(name string) bool { return name[:8] == direction || strings.HasPrefix(name, "agent_xfer_") }
	for name := range written {
		if ofIt(name) && !slices.Contains(run, name) {
			return true
		}
	}
	return slices.ContainsFunc(run, func(name string) bool { return !ofIt(name) })
}

func (e *expected) sum(point string, values []uint64) { e.points[point] = clamp(add(values)) }

func (e *expected) distribution(point string, values []uint64, bounds []float64, perUnit float64) {
	d := distribution{
		Count: uint64(len(values)), Min: math.Inf(1),
		Bounds: make([]float64, len(bounds)), Counts: make([]uint64, len(bounds)+1),
	}
	d.Sum, _ = new(big.Float).SetInt(add(values)).Float64()
	d.Sum /= perUnit
	for i, b := range bounds {
		d.Bounds[i] = b / perUnit
	}
	for _, v := range values {
		f := float64(v)
		d.Min, d.Max = min(d.Min, f/perUnit), max(d.Max, f/perUnit)
		bucket := 0
		for bucket < len(bounds) && f > bounds[bucket] {
			bucket++
		}
		d.Counts[bucket]++
	}
	e.points[point] = d
}

func add(values []uint64) *big.Int {
	total := new(big.Int)
	for _, v := range values {
		total.Add(total, new(big.Int).SetUint64(v))
	}
	return total
}

// clamp returns the nearest int64, the only type of integer in OTLP.
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
