// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"math/rand/v2"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// transfers returns at most n events of an agent that transfers KV cache in both
// directions: complete groups of four events, with a few errors and registrations.
// The values vary, so that the CPU can't predict branches.
func transfers(n int) []ringbuf.Event {
	r := rand.New(rand.NewPCG(1, 2))
	events := make([]ringbuf.Event, 0, n)
	for len(events)+group <= n {
		post := uint64(5 + r.ExpFloat64()*20)
		took := post + uint64(50+r.ExpFloat64()*3000)
		direction := ringbuf.Type(r.IntN(2))
		events = append(events,
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, post),
			ringbuf.NewEvent(ringbuf.TypeXferTime, took),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+direction, 1<<r.IntN(26)*(1+r.Uint64N(100))),
			ringbuf.NewEvent(ringbuf.TypeTxRequests+direction, 1))
		switch r.IntN(1000) {
		case 0:
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30))
		case 1:
			events = append(events, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		}
	}
	return events[:min(n, len(events))]
}

// group is the number of events of a transfer.
const group = 4
