// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// This file converts events to metrics with an implementation of the catalog that is independent of the
// receiver, except for ringbuf's list of NIXL's names.

const micros = 1e6 // per second

// The catalog's names of directions, by NIXL's names, and of categories.
var (
	directions = map[string]string{"tx": "transmit", "rx": "receive"}
	categories = []string{
		"memory", "transfer", "connection", "backend", "error", "performance", "system", "custom",
	}
)

// catalogEvent is an event in terms of the catalog.
type catalogEvent struct {
	category, name string // attributes of nixl.events
	known          string // current NIXL name; empty if it isn't NIXL's event
	value          uint64
}

// toCatalog converts an event of a fixture.
func toCatalog(version int32, e ringtest.Event) catalogEvent {
	if e.Type == nil {
		category := categoryOf(*e.Category)
		return catalogEvent{category: category, name: e.Name, known: knownName(category, e.Name), value: e.Value}
	}
	kind, known := ringbuf.Type(*e.Type), *e.Type < 20 || *e.Type == 20 && version >= 4
	as := catalogEvent{category: "unknown", name: fmt.Sprintf("unknown_event_%d", *e.Type), value: e.Value}
	if e.Category != nil {
		as.category = categoryOf(*e.Category)
		known = known && kind.Category() == ringbuf.Category(*e.Category)
	}
	if known {
		as.name, as.known, as.category = kind.String(), kind.String(), categoryOf(int32(kind.Category()))
	}
	if kind == ringbuf.TypeEventsDropped && known {
		as.category = "telemetry"
	}
	return as
}

func categoryOf(c int32) string {
	if c < 0 || int(c) >= len(categories) {
		return "unknown"
	}
	return categories[c]
}

// knownName returns NIXL's current name for an event with a name.
func knownName(category, name string) string {
	for t := range ringbuf.TypeEventsDropped {
		if categoryOf(int32(t.Category())) == category && (name == t.LegacyName() || name == t.String()) {
			return t.String()
		}
	}
	return ""
}

// wanted are the expected values of one agent.
type wanted struct {
	otlpfile.Series

	sums         map[string]*big.Int
	unknownUsage bool           // whether the memory usage is unknown
	group        []catalogEvent // the newest known events, at most four
}

// wantEvents returns the series of a ring's events, without torn groups, because events that a test chooses
// individually belong to no transfer.
func wantEvents(events []catalogEvent, capacity uint64) otlpfile.Series {
	w := wanted{Series: otlpfile.Series{}, sums: map[string]*big.Int{}}
	for t := ringbuf.TypeErrNotPosted; t.IsError(); t++ {
		w.count("nixl.errors{error.type="+strings.TrimPrefix(t.String(), "agent_err_")+"}", 0)
	}
	for _, name := range []string{
		"nixl.telemetry.events.dropped", "nixl.telemetry.ring.saturations",
		"nixl.telemetry.ring.restarts", lossyRestarts, "nixl.telemetry.ring.foreign_reads",
	} {
		w.count(name, 0)
	}
	for _, e := range events {
		w.count(fmt.Sprintf("nixl.events{nixl.event.category=%s,nixl.event.name=%s}", e.category, cmp.Or(e.known, e.name)), 1)
		if e.known != "" {
			w.known(e.known, e.value)
			w.follow(e)
		} else {
			w.made(e)
		}
	}
	w.count("nixl.telemetry.ring.capacity", capacity)
	if capacity > 0 && uint64(len(events)) == capacity-1 {
		w.count("nixl.telemetry.ring.saturations", 1)
	}
	if w.unknownUsage {
		delete(w.Series, memoryUsage)
	}
	return w.Series
}

// known counts one of NIXL's own events.
func (w *wanted) known(name string, value uint64) {
	name = strings.TrimPrefix(name, "agent_")
	direction, rest, _ := strings.Cut(name, "_")
	labels := "{nixl.transfer.direction=" + directions[direction] + "}"
	switch {
	case rest == "bytes":
		w.count("nixl.transfer.io"+labels, value)
		w.distribute("nixl.transfer.size"+labels, value, 1, sizeBounds)
		w.last("nixl.transfer.last.size"+labels, value)
	case rest == "requests_num":
		w.count("nixl.transfer.requests"+labels, value)
	case name == "xfer_time":
		w.distribute("nixl.transfer.duration", value, micros, durationBounds)
		w.Series["nixl.transfer.last.duration"] = otlpfile.Value{Float: float64(value) / micros}
	case name == "xfer_post_time":
		w.distribute("nixl.transfer.post.duration", value, micros, durationBounds)
		w.Series["nixl.transfer.last.post_duration"] = otlpfile.Value{Float: float64(value) / micros}
	case name == "memory_registered":
		w.memory("nixl.memory.registered", "register", value)
	case name == "memory_deregistered":
		w.memory("nixl.memory.deregistered", "deregister", value)
	case name == "telemetry_events_dropped":
		w.count("nixl.telemetry.events.dropped", value)
	default:
		w.count("nixl.errors{error.type="+strings.TrimPrefix(name, "err_")+"}", value)
	}
}

// follow records the throughput once the four events of a transfer are next to each other.
func (w *wanted) follow(e catalogEvent) {
	w.group = append(w.group, e)
	w.group = w.group[max(0, len(w.group)-4):]
	var names []string
	for _, e := range w.group {
		names = append(names, e.known)
	}
	for short, direction := range directions {
		transfer := []string{"agent_xfer_post_time", "agent_xfer_time", "agent_" + short + "_bytes", "agent_" + short + "_requests_num"}
		if !slices.Equal(names, transfer) {
			continue
		}
		rate := new(big.Int).SetUint64(w.group[2].value)
		rate.Mul(rate, big.NewInt(micros)).Quo(rate, new(big.Int).SetUint64(max(w.group[1].value, 1)))
		if !rate.IsUint64() {
			rate.SetUint64(math.MaxUint64)
		}
		w.distribute("nixl.transfer.throughput{nixl.transfer.direction="+direction+"}", rate.Uint64(), 1, throughputBounds)
	}
}

// made counts an event of a backend or an application, or one that is newer than the catalog.
func (w *wanted) made(e catalogEvent) {
	switch e.category {
	case "connection", "backend", "system", "custom":
		labels := fmt.Sprintf("{nixl.event.category=%s,nixl.event.name=%s}", e.category, e.name)
		w.count("nixl.event.value"+labels, e.value)
		w.last("nixl.event.last_value"+labels, e.value)
	case "error":
		w.count("nixl.errors{error.type=_OTHER}", e.value)
	}
}

func (w *wanted) memory(metric, operation string, value uint64) {
	w.count(metric, value)
	w.last("nixl.memory.last.size{nixl.memory.operation="+operation+"}", value)
	usage := new(big.Int)
	if s := w.sums["nixl.memory.registered"]; s != nil {
		usage.Add(usage, s)
	}
	if s := w.sums["nixl.memory.deregistered"]; s != nil {
		usage.Sub(usage, s)
	}
	if usage.Sign() < 0 {
		w.unknownUsage = true // events are missing, because an agent never deregisters more than it has registered
	}
	w.Series[memoryUsage] = otlpfile.Value{Int: clamp(usage)}
}

// count adds to a counter, up to the largest number in OTLP.
func (w *wanted) count(series string, value uint64) {
	s := w.sums[series]
	if s == nil {
		s = new(big.Int)
		w.sums[series] = s
	}
	s.Add(s, new(big.Int).SetUint64(value))
	w.Series[series] = otlpfile.Value{Int: clamp(s)}
}

func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}

func (w *wanted) last(series string, value uint64) {
	w.Series[series] = otlpfile.Value{Int: clamp(new(big.Int).SetUint64(value))}
}

// The catalog's buckets, in the ring's units.
var (
	sizeBounds = []uint64{
		1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32, 1 << 34,
	}
	durationBounds = []uint64{
		10, 25, 50, 100, 250, 500,
		1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
		1_000_000, 5_000_000, 10_000_000,
	}
	throughputBounds = []uint64{
		1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11, 2e11, 4e11, 1e12,
	}
)

func (w *wanted) distribute(series string, value uint64, perUnit float64, bounds []uint64) {
	v, n := w.Series[series], float64(value)/perUnit
	if v.Count == 0 {
		v = otlpfile.Value{Min: n, Max: n, Buckets: make([]uint64, len(bounds)+1)}
	}
	v.Count++
	v.Sum += n
	v.Min, v.Max = min(v.Min, n), max(v.Max, n)
	at := 0
	for at < len(bounds) && value > bounds[at] {
		at++
	}
	v.Buckets[at]++
	w.Series[series] = v
}
