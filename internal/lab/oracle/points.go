// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Points are int64, float64 or Distribution, by metric and attributes:
// nixl.errors{error.type=backend}.
type Points map[string]any

// MarshalJSON encodes floating-point numbers with a decimal point, so that they differ from
// integers.
func (p Points) MarshalJSON() ([]byte, error) {
	encoded := make(map[string]any, len(p))
	for name, v := range p {
		if f, ok := v.(float64); ok {
			text := strconv.FormatFloat(f, 'f', -1, 64)
			if !strings.Contains(text, ".") {
				text += ".0"
			}
			v = json.RawMessage(text)
		}
		encoded[name] = v
	}
	return json.Marshal(encoded)
}

// UnmarshalJSON parses the result of MarshalJSON.
func (p *Points) UnmarshalJSON(b []byte) error {
	var encoded map[string]json.RawMessage
	if err := json.Unmarshal(b, &encoded); err != nil {
		return err
	}
	*p = make(Points, len(encoded))
	for name, text := range encoded {
		var (
			n   int64
			f   float64
			d   Distribution
			err error
		)
		switch {
		case text[0] == '{':
			err = json.Unmarshal(text, &d)
			(*p)[name] = d
		case strings.Contains(string(text), "."):
			err = json.Unmarshal(text, &f)
			(*p)[name] = f
		default:
			err = json.Unmarshal(text, &n)
			(*p)[name] = n
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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
			p.distribution("nixl.transfer.size"+attribute, sizes)
		}
		if requests := o.known["agent_"+d+"_requests_num"]; requests != nil {
			p.sum("nixl.transfer.requests"+attribute, requests)
		}
		if rates := o.throughputs[d]; rates != nil {
			p.distribution("nixl.transfer.throughput"+attribute, rates)
		}
	}
	for metric, event := range map[string]string{"duration": "agent_xfer_time", "post_duration": "agent_xfer_post_time"} {
		if times := o.known[event]; times != nil {
			p.distribution("nixl.transfer."+strings.ReplaceAll(metric, "_", "."), times)
			p["nixl.transfer.last."+metric] = float64(times.last) / perSecond
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
	if o.others.sum.Sign() > 0 {
		p.sum("nixl.errors{error.type=_OTHER}", &o.others)
	}
	p.sum("nixl.telemetry.events.dropped", o.known["agent_telemetry_events_dropped"])
	o.byNamePoints(p)
	return p
}

func (o *Oracle) byNamePoints(p Points) {
	for n, values := range o.byName {
		attributes := "{nixl.event.category=" + n.category + ",nixl.event.name=" + n.name + "}"
		p["nixl.events"+attributes] = int64(values.count)
		switch n.category {
		case "connection", "backend", "system", "custom":
			p.sum("nixl.event.value"+attributes, values)
			p.last("nixl.event.last_value"+attributes, values)
		case "unknown":
			p["nixl.telemetry.events.unknown{nixl.event.name="+n.name+"}"] = int64(values.count)
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
	p[metric+"restarts"], p[metric+"foreign_reads"] = int64(0), int64(0)
	if l >= ringbuf.V4 {
		p[metric+"torn_groups"] = o.TornGroups()
	}
}

// TornGroups returns the number of transfers with missing events.
func (o *Oracle) TornGroups() int64 { return int64(o.torn.Count()) }

func (p Points) sum(point string, v *values) {
	if v == nil {
		v = new(values)
	}
	p[point] = clamp(&v.sum)
}

func (p Points) last(point string, v *values) { p[point] = clamp(new(big.Int).SetUint64(v.last)) }

func (p Points) distribution(point string, v *values) {
	d := *v.spread
	d.Counts = slices.Clone(d.Counts)
	sum, _ := new(big.Float).SetInt(&v.sum).Float64()
	d.Sum = sum / v.perUnit
	p[point] = d
}

func newDistribution(bounds []float64) *Distribution {
	return &Distribution{Min: math.Inf(1), Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// observe adds a value, but not to the sum, which needs all of its digits.
func (d *Distribution) observe(x float64) {
	d.Count++
	d.Min, d.Max = min(d.Min, x), max(d.Max, x)
	bucket := 0
	for bucket < len(d.Bounds) && x > d.Bounds[bucket] {
		bucket++
	}
	d.Counts[bucket]++
}

// NewDistribution returns the distribution of values. It divides them by perUnit to get the
// unit of the bounds.
func NewDistribution(all []uint64, perUnit float64, bounds []float64) Distribution {
	v := values{spread: newDistribution(bounds), perUnit: perUnit}
	for _, value := range all {
		v.add(value)
	}
	p := make(Points)
	p.distribution("", &v)
	return p[""].(Distribution) //nolint:errcheck,forcetypeassert // it was just set
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
