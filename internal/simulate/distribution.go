// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Distribution is a distribution of sizes in bytes, times in microseconds, or throughput in bytes
// per second. The bounds of its buckets are in the [Report].
type Distribution struct {
	Unit    string   `json:"unit"` // as in UCUM: By, us or By/s
	Count   uint64   `json:"count"`
	Sum     uint64   `json:"sum"` // modulo 2^64
	Min     uint64   `json:"min"`
	Max     uint64   `json:"max"`
	Last    uint64   `json:"last"`              // newest value; in a sum over agents, the largest one
	Buckets []uint64 `json:"buckets,omitempty"` // counts by the catalog's default bounds, one more than bounds
}

const micros = 1e6 // per second

// Units of distributions.
const inBytes, inMicros, perSecond = "By", "us", "By/s"

var bounds = map[string][]uint64{
	inBytes:   integers(semconv.TransferSize.Bounds, 1),
	inMicros:  integers(semconv.TransferDuration.Bounds, micros),
	perSecond: integers(semconv.TransferThroughput.Bounds, 1),
}

// integers converts bounds in the metric's unit to bounds of event values.
func integers(bounds []float64, unit float64) (list []uint64) {
	for _, v := range bounds {
		list = append(list, uint64(v*unit+0.5))
	}
	return list
}

func newDistribution(unit string) Distribution {
	return Distribution{Unit: unit, Buckets: make([]uint64, len(bounds[unit])+1)}
}

func (d *Distribution) observe(v uint64) {
	if d.Count == 0 || v < d.Min {
		d.Min = v
	}
	d.Count++
	d.Sum += v
	d.Max, d.Last = max(d.Max, v), v
	of := bounds[d.Unit]
	i := 0
	for i < len(of) && v > of[i] {
		i++
	}
	d.Buckets[i]++
}

func (d *Distribution) add(o *Distribution) {
	d.Unit = o.Unit
	if d.Count == 0 || o.Count > 0 && o.Min < d.Min {
		d.Min = o.Min
	}
	d.Count += o.Count
	d.Sum += o.Sum
	d.Max, d.Last = max(d.Max, o.Max), max(d.Last, o.Last)
	if len(d.Buckets) < len(o.Buckets) {
		d.Buckets = append(d.Buckets, make([]uint64, len(o.Buckets)-len(d.Buckets))...)
	}
	for i, n := range o.Buckets {
		d.Buckets[i] += n
	}
}

func (d Distribution) clone() Distribution {
	d.Buckets = slices.Clone(d.Buckets)
	return d
}

// distributions are the distributions of the events that reached the ring.
type distributions struct {
	written Written              // only the distributions in it
	of      [kinds]*Distribution // the one of a kind's values, or nil
	group   []staged             // the last events of this life, at most four
}

// listed is one of an agent's distributions.
type listed struct {
	*Distribution
	unit string
	of   ringbuf.Type // whose values it has, or computed
}

// computed means that the values of a distribution aren't those of an event type.
const computed = ringbuf.Type(ringbuf.Types)

// list is the only list of the distributions.
func (w *Written) list() []listed {
	return []listed{
		{&w.Transmit.Size, inBytes, ringbuf.TypeTxBytes},
		{&w.Receive.Size, inBytes, ringbuf.TypeRxBytes},
		{&w.Duration, inMicros, ringbuf.TypeXferTime},
		{&w.PostDuration, inMicros, ringbuf.TypeXferPostTime},
		{&w.Transmit.Throughput, perSecond, computed},
		{&w.Receive.Throughput, perSecond, computed},
	}
}

func newDistributions() *distributions {
	d := new(distributions)
	for _, one := range d.written.list() {
		*one.Distribution = newDistribution(one.unit)
		if one.of != computed {
			d.of[one.of] = one.Distribution
		}
	}
	return d
}

// totals returns a copy of the distributions.
func (d *distributions) totals() Written {
	w := d.written
	for _, one := range w.list() {
		*one.Distribution = one.clone()
	}
	return w
}

func (d *distributions) add(events []staged) {
	for i := range events {
		if of := d.of[events[i].kind]; of != nil {
			of.observe(events[i].value)
		}
		d.addTransfer(events[i])
	}
}

// addTransfer counts the transfer that ends with an event, if its events were written in a row.
func (d *distributions) addTransfer(e staged) {
	if e.kind >= kind(ringbuf.Types) {
		return // an event of a backend or an application
	}
	d.group = append(d.group, e)
	if len(d.group) > 4 {
		d.group = slices.Delete(d.group, 0, 1)
	}
	if len(d.group) < 4 {
		return
	}
	g := d.group
	at := ringbuf.Type(g[2].kind) - ringbuf.TypeTxBytes
	if ringbuf.Type(g[0].kind) != ringbuf.TypeXferPostTime || ringbuf.Type(g[1].kind) != ringbuf.TypeXferTime ||
		at > 1 || ringbuf.Type(g[3].kind) != ringbuf.TypeTxRequests+at {
		return
	}
	rate := g[2].value * micros / max(g[1].value, 1) // simulated sizes don't overflow
	[]*Direction{&d.written.Transmit, &d.written.Receive}[at].Throughput.observe(rate)
}
