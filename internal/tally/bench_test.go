// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/rand/v2"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// slots is the default capacity of agents. A full ring holds one event less.
const slots = 4096

// BenchmarkAdd tallies a full ring and copies the same bytes, in turns. x-memcpy is the
// ratio of the two, which depends less on the machine's load than the times do.
func BenchmarkAdd(b *testing.B) {
	for _, l := range ringbuf.Layouts() {
		b.Run(l.String(), func(b *testing.B) {
			batch := batchOf(b, l, transferMix(rand.New(rand.NewPCG(1, 2)))...)
			agent := NewAgent(shapeOf(b, Config{}))
			agent.Add(batch) // adds every name once
			b.ReportAllocs()
			took, reference := ringtest.InTurns(b, 1, func() { agent.Add(batch) }, copying(batch))
			b.ReportMetric(took/float64(batch.Len()), "ns/event")
			b.ReportMetric(reference/float64(batch.Len()), "memcpy-ns/event")
			b.ReportMetric(took/reference, "x-memcpy")
		})
	}
}

// copying returns a function that copies a batch.
func copying(batch ringbuf.Batch) func() {
	switch batch.Layout() {
	case ringbuf.V1:
		return copyingSlots(batch.Timed())
	case ringbuf.V2:
		return copyingSlots(batch.Categorized())
	default:
		return copyingSlots(batch.Typed())
	}
}

func copyingSlots[T any](events []T) func() {
	dst := make([]T, len(events))
	return func() { copy(dst, events) }
}

// transferMix returns the events of an agent that moves KV cache in both directions:
// groups of four, and occasionally an error or a registration.
func transferMix(r *rand.Rand) []ringbuf.Event {
	const n = slots - 1
	events := make([]ringbuf.Event, 0, n)
	for len(events) < n {
		post := uint64(5 + r.ExpFloat64()*20)
		took := post + uint64(50+r.ExpFloat64()*3000)
		dir := ringbuf.Type(r.IntN(2))
		group := []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, post),
			ringbuf.NewEvent(ringbuf.TypeXferTime, took),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+dir, 1<<r.IntN(26)*(1+r.Uint64N(100))),
			ringbuf.NewEvent(ringbuf.TypeTxRequests+dir, 1),
		}
		switch r.IntN(1000) {
		case 0:
			group = append(group, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30))
		case 1:
			group = append(group, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		}
		events = append(events, group...)
	}
	return events[:n]
}
