// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"math/big"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Points are int64, float64 or Distribution, by metric and attributes:
// nixl.errors{error.type=backend}.
type Points map[string]any

// Distribution is a histogram with explicit bounds.
type Distribution struct {
	Count         uint64
	Sum, Min, Max float64
	Bounds        []float64
	Counts        []uint64
}

// Points returns the points of all events.
func (o *Oracle) Points() Points {
	p := make(Points)
	for d, direction := range map[string]string{"tx": "transmit", "rx": "receive"} {
		attribute := "{nixl.transfer.direction=" + direction + "}"
		if sizes := o.known["agent_"+d+"_bytes"]; sizes != nil {
			p.sum("nixl.transfer.io"+attribute, sizes)
			p.last("nixl.transfer.last.size"+attribute, sizes)
		}
		p.distribution("nixl.transfer.size"+attribute, o.known["agent_"+d+"_bytes"], 1, o.SizeBounds)
		p.distribution("nixl.transfer.throughput"+attribute, o.throughputs[d], 1, o.ThroughputBounds)
		if requests := o.known["agent_"+d+"_requests_num"]; requests != nil {
			p.sum("nixl.transfer.requests"+attribute, requests)
		}
	}
	for metric, times := range map[string][]uint64{"duration": o.known["agent_xfer_time"], "post_duration": o.known["agent_xfer_post_time"]} {
		p.distribution("nixl.transfer."+strings.ReplaceAll(metric, "_", "."), times, perSecond, o.DurationBounds)
		if times != nil {
			p["nixl.transfer.last."+metric] = float64(times[len(times)-1]) / perSecond
		}
	}
	for _, operation := range []string{"register", "deregister"} {
		if sizes := o.known["agent_memory_"+operation+"ed"]; sizes != nil {
			p.sum("nixl.memory."+operation+"ed", sizes)
			p.last("nixl.memory.last.size{nixl.memory.operation="+operation+"}", sizes)
			if o.usage != nil {
				p["nixl.memory.usage"] = clamp(o.usage)
			}
		}
	}
	for _, known := range knownEvents {
		if known.category == "error" {
			p.sum("nixl.errors{error.type="+strings.TrimPrefix(known.name, "agent_err_")+"}", o.known[known.name])
		}
	}
	if add(o.others).Sign() > 0 {
		p.sum("nixl.errors{error.type=_OTHER}", o.others)
	}
	p.sum("nixl.telemetry.events.dropped", o.known["agent_telemetry_events_dropped"])
	o.byNamePoints(p)
	return p
}

func (o *Oracle) byNamePoints(p Points) {
	for n, values := range o.byName {
		attributes := "{nixl.event.category=" + n.category + ",nixl.event.name=" + n.name + "}"
		p["nixl.events"+attributes] = int64(len(values))
		switch n.category {
		case "connection", "backend", "system", "custom":
			p.sum("nixl.event.value"+attributes, values)
			p.last("nixl.event.last_value"+attributes, values)
		}
	}
}

// Ring adds the points of a ring whose agent never restarted, and from which a reader took
// most events, at most, at a time.
func (p Points) Ring(o *Oracle, l ringbuf.Layout, capacity, most uint64) {
	const metric = "nixl.telemetry.ring."
	p[metric+"capacity"] = int64(capacity)
	p[metric+"utilization"] = float64(most) / float64(capacity-1)
	p[metric+"saturations"] = int64(most / (capacity - 1))
	p[metric+"restarts"], p[metric+"lossy_restarts"], p[metric+"foreign_reads"] = int64(0), int64(0), int64(0)
	if l >= ringbuf.V4 {
		p[metric+"torn_groups"] = o.TornGroups()
	}
}

// TornGroups returns the number of transfers with missing events.
func (o *Oracle) TornGroups() int64 { return int64(o.torn.Count()) }

func (p Points) sum(point string, values []uint64) { p[point] = clamp(add(values)) }

func (p Points) last(point string, values []uint64) {
	p[point] = clamp(new(big.Int).SetUint64(values[len(values)-1]))
}

func (p Points) distribution(point string, values []uint64, perUnit float64, bounds []float64) {
	if len(values) > 0 {
		p[point] = NewDistribution(values, perUnit, bounds)
	}
}

// NewDistribution returns the distribution of values. It divides them by perUnit to get the
// unit of the bounds.
func NewDistribution(values []uint64, perUnit float64, bounds []float64) Distribution {
	sum, _ := new(big.Float).SetInt(add(values)).Float64()
	d := Distribution{
		Count: uint64(len(values)), Sum: sum / perUnit, Min: math.Inf(1),
		Bounds: bounds, Counts: make([]uint64, len(bounds)+1),
	}
	for _, v := range values {
		x := float64(v) / perUnit
		d.Min, d.Max = min(d.Min, x), max(d.Max, x)
		bucket := 0
		for bucket < len(bounds) && x > bounds[bucket] {
			bucket++
		}
		d.Counts[bucket]++
	}
	return d
}

func add(values []uint64) *big.Int {
	sum := new(big.Int)
	for _, v := range values {
		sum.Add(sum, new(big.Int).SetUint64(v))
	}
	return sum
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
