// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math/bits"
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// sum is the sum of the values of events of one kind.
type sum struct {
	count     uint64
	sum       uint64 // modulo 2^64
	min, max  uint64
	last      uint64
	overflows uint64 // number of times that sum has wrapped
}

func (s *sum) add(v uint64) {
	if s.count == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.count++
	s.last = v
	var carry uint64
	s.sum, carry = bits.Add64(s.sum, v, 0)
	s.overflows += carry
}

// sums are sums by kind, separately for layouts with types and with names, because errors have
// other names in the latter.
type sums struct {
	by     [2][kinds]sum
	newest [kinds]uint8 // index in by of the newest event
}

func family(l ringbuf.Layout) uint8 {
	if l.Named() {
		return 1
	}
	return 0
}

func (s *sums) add(l ringbuf.Layout, k kind, value uint64) {
	f := family(l)
	s.by[f][k].add(value)
	s.newest[k] = f
}

func (s *sums) addAll(l ringbuf.Layout, events []staged) {
	for i := range events {
		s.add(l, events[i].kind, events[i].value)
	}
}

// both returns the sum of a kind over all layouts.
func (s *sums) both(k kind) sum {
	f := s.newest[k]
	a, b := s.by[f][k], s.by[1-f][k]
	if b.count == 0 {
		return a
	}
	var carry uint64
	a.sum, carry = bits.Add64(a.sum, b.sum, 0)
	a.overflows += b.overflows + carry
	a.count += b.count
	a.min, a.max = min(a.min, b.min), max(a.max, b.max)
	return a
}

func (s *sums) events() (n uint64) {
	for _, of := range s.by {
		for k := range of {
			n += of[k].count
		}
	}
	return n
}

// buckets count values in the catalog's default buckets.
type buckets struct {
	bounds []uint64
	counts []uint64 // one more than bounds
}

func newBuckets(bounds []float64, unit float64) buckets {
	b := buckets{counts: make([]uint64, len(bounds)+1)}
	for _, v := range bounds {
		b.bounds = append(b.bounds, uint64(v*unit+0.5))
	}
	return b
}

func (b *buckets) add(v uint64) {
	i := 0
	for i < len(b.bounds) && v > b.bounds[i] {
		i++
	}
	b.counts[i]++
}

// histograms are the distributions in the catalog.
type histograms struct {
	txBytes, rxBytes, xfer, post buckets

	throughput [2]buckets // transmit, receive
	rates      [2]sum     // sums of throughput, in bytes per second
	classes    [4]times   // times of the same transfers, by size class
	group      []staged   // the last events of this life, at most four
}

// times are the times of transfers.
type times struct {
	xfer, post               sum
	xferBuckets, postBuckets buckets
}

const micros = 1e6 // per second

// bucketBounds returns the bounds of the histograms.
func bucketBounds() Bounds {
	return Bounds{
		Bytes:  newBuckets(semconv.TransferSize.Bounds, 1).bounds,
		Micros: newBuckets(semconv.TransferDuration.Bounds, micros).bounds,
		Rate:   newBuckets(semconv.TransferThroughput.Bounds, 1).bounds,
	}
}

func newHistograms() histograms {
	h := histograms{
		txBytes: newBuckets(semconv.TransferSize.Bounds, 1),
		rxBytes: newBuckets(semconv.TransferSize.Bounds, 1),
		xfer:    newBuckets(semconv.TransferDuration.Bounds, micros),
		post:    newBuckets(semconv.TransferDuration.Bounds, micros),
		throughput: [2]buckets{
			newBuckets(semconv.TransferThroughput.Bounds, 1), newBuckets(semconv.TransferThroughput.Bounds, 1),
		},
	}
	for i := range h.classes {
		h.classes[i].xferBuckets = newBuckets(semconv.TransferDuration.Bounds, micros)
		h.classes[i].postBuckets = newBuckets(semconv.TransferDuration.Bounds, micros)
	}
	return h
}

func (h *histograms) add(events []staged) {
	for i := range events {
		h.addTransfer(events[i])
		switch ringbuf.Type(events[i].kind) {
		case ringbuf.TypeTxBytes:
			h.txBytes.add(events[i].value)
		case ringbuf.TypeRxBytes:
			h.rxBytes.add(events[i].value)
		case ringbuf.TypeXferTime:
			h.xfer.add(events[i].value)
		case ringbuf.TypeXferPostTime:
			h.post.add(events[i].value)
		default:
		}
	}
}

// addTransfer adds the throughput of a transfer and its times by size class, once its four
// events were written in a row.
func (h *histograms) addTransfer(e staged) {
	if e.kind >= kind(ringbuf.Types) {
		return // an event of a backend or an application
	}
	h.group = append(h.group, e)
	if len(h.group) > 4 {
		h.group = slices.Delete(h.group, 0, 1)
	}
	if len(h.group) < 4 {
		return
	}
	g := h.group
	d := ringbuf.Type(g[2].kind) - ringbuf.TypeTxBytes
	if ringbuf.Type(g[0].kind) != ringbuf.TypeXferPostTime || ringbuf.Type(g[1].kind) != ringbuf.TypeXferTime ||
		d > 1 || ringbuf.Type(g[3].kind) != ringbuf.TypeTxRequests+d {
		return
	}
	rate := g[2].value * micros / max(g[1].value, 1) // simulated sizes don't overflow
	h.throughput[d].add(rate)
	h.rates[d].add(rate)
	c := &h.classes[semconv.SizeClass(g[2].value)]
	c.post.add(g[0].value)
	c.postBuckets.add(g[0].value)
	c.xfer.add(g[1].value)
	c.xferBuckets.add(g[1].value)
}

func (b *buckets) clone() []uint64 { return slices.Clone(b.counts) }
