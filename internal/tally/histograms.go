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

func (h *histograms) list() [6]*Histogram {
	return [...]*Histogram{&h.sizes[Transmit], &h.sizes[Receive], &h.duration, &h.post, &h.throughput[Transmit], &h.throughput[Receive]}
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
	for i, scale := range []*scale{s.size, s.size, s.duration, s.duration, s.throughput, s.throughput} {
		h.list()[i].init(scale)
	}
}
