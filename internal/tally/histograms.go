// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// histograms are the histograms of an agent. Only this file lists them.
type histograms struct {
	shape *Shape

	sizes          [2]Histogram // by Direction
	duration, post Histogram
	throughput     [2]Histogram // of whole transfers, by Direction
}

// listed is one of an agent's histograms.
type listed struct {
	*Histogram
	scale *scale
	of    ringbuf.Type // whose values it has, or computed
}

// computed means that the values of a histogram aren't those of an event type.
const computed = ringbuf.Type(ringbuf.Types)

func (h *histograms) list() [6]listed {
	s := h.shape
	return [...]listed{
		{&h.sizes[Transmit], s.size, ringbuf.TypeTxBytes},
		{&h.sizes[Receive], s.size, ringbuf.TypeRxBytes},
		{&h.duration, s.duration, ringbuf.TypeXferTime},
		{&h.post, s.duration, ringbuf.TypeXferPostTime},
		{&h.throughput[Transmit], s.throughput, computed},
		{&h.throughput[Receive], s.throughput, computed},
	}
}

// of returns the histogram that has the values of a type, or nil if the type has only a
// total.
func (h *histograms) of(t ringbuf.Type) *Histogram {
	switch t {
	case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		return &h.sizes[t]
	case ringbuf.TypeXferTime:
		return &h.duration
	case ringbuf.TypeXferPostTime:
		return &h.post
	default:
		return nil
	}
}

func (h *histograms) init(s *Shape) {
	h.shape = s
	for _, one := range h.list() {
		one.init(one.scale)
	}
}
