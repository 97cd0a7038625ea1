// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

const (
	post   = ringbuf.TypeXferPostTime
	took   = ringbuf.TypeXferTime
	txSize = ringbuf.TypeTxBytes
	rxSize = ringbuf.TypeRxBytes
	txReq  = ringbuf.TypeTxRequests
	rxReq  = ringbuf.TypeRxRequests
)

var wholeGroups = [][]ringbuf.Type{{post, took, txSize, txReq}, {post, took, rxSize, rxReq}}

// typed returns events of the given types with value 1.
func typed(types ...ringbuf.Type) []ringbuf.Event {
	events := make([]ringbuf.Event, len(types))
	for i, kind := range types {
		events[i] = ringbuf.Event{Type: kind, Value: 1}
	}
	return events
}

func TestTornGroupsAreCounted(t *testing.T) {
	const unknown = ringbuf.Type(21)
	whole := []ringbuf.Type{post, took, txSize, txReq, post, took, rxSize, rxReq}
	tests := []struct {
		name  string
		types []ringbuf.Type
		want  uint64
	}{
		{"nothing", nil, 0},
		{"whole groups", whole, 0},
		{"the first group began before", slices.Concat([]ringbuf.Type{took, txSize, txReq}, whole), 0},
		{"all but the last event came before", slices.Concat([]ringbuf.Type{txReq}, whole), 0},
		{"without post time", slices.Concat(whole, []ringbuf.Type{took, txSize, txReq}), 1},
		{"without transfer time", slices.Concat(whole, []ringbuf.Type{post, rxSize, rxReq}), 1},
		{"without bytes", slices.Concat(whole, []ringbuf.Type{post, took, txReq}), 1},
		{"without requests", slices.Concat(whole, []ringbuf.Type{post, took, txSize}, whole), 1},
		{"the newest group may continue", slices.Concat(whole, []ringbuf.Type{post, took, txSize}), 0},
		{"post time only, twice", slices.Concat(whole, []ringbuf.Type{post, post}, whole), 2},
		{"requests only", slices.Concat(whole, []ringbuf.Type{txReq, rxReq}), 2},
		{"bytes of one direction, requests of the other", slices.Concat(whole, []ringbuf.Type{post, took, txSize, rxReq}), 2},
		{"memory and errors between groups", slices.Concat(
			[]ringbuf.Type{ringbuf.TypeMemoryRegistered}, whole, []ringbuf.Type{ringbuf.TypeErrBackend}, whole), 0},
		{"an error ends a group", slices.Concat(whole, []ringbuf.Type{post, took, ringbuf.TypeErrBackend}), 1},
		{"an unknown type is ignored", slices.Concat(whole, []ringbuf.Type{unknown, post, took, unknown, txSize, txReq, unknown}), 0},
		{"a matching head and tail look like one group", slices.Concat(whole, []ringbuf.Type{post, took, rxSize, rxReq}), 0},
		{"the agent omits times", []ringbuf.Type{txSize, txReq, rxSize, rxReq, txSize, txReq}, 0},
		{"the agent writes bytes only", []ringbuf.Type{txSize, txSize, rxSize, txSize}, 0},
		{"the agent writes times only", []ringbuf.Type{post, took, post, took, post, took}, 0},
		{"the agent writes what it sends only", []ringbuf.Type{post, took, txSize, txReq, post, took, post, took, post, took, txSize, txReq}, 0},
		{"the agent omits post times and what it sends", []ringbuf.Type{took, took, rxSize, rxReq, took, took, rxSize, rxReq}, 0},
		{"the agent omits sizes of what it sends", []ringbuf.Type{post, took, txReq, post, took, rxSize, rxReq, post, took, txReq}, 0},
		{"the agent writes times only, and one is missing", []ringbuf.Type{post, took, post, post, took}, 1},
		{"bytes of one direction only, and no requests", []ringbuf.Type{post, took, txSize, post, took, post, took, txSize}, 0},
		{"bytes of both directions, no requests, and bytes are missing", []ringbuf.Type{post, took, txSize, post, took, rxSize, post, took, post, took, txSize}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent := NewAgent(shapeOf(t, Config{}))
			feed(t, agent, ringbuf.V4, typed(tt.types...))
			if got := agent.TornGroups(); got != tt.want {
				t.Errorf("%d torn groups, want %d", got, tt.want)
			}
			var plain oracle.Torn
			for _, kind := range tt.types {
				plain.Add(kind)
			}
			if plain.Count() != tt.want {
				t.Errorf("the oracle counts %d torn groups, want %d", plain.Count(), tt.want)
			}
		})
	}
}

// The test uses two groups of any direction with every subset of their events, split into
// two batches at every point.
func TestTornGroupsOfEverySubsetMatchTheModel(t *testing.T) {
	s := shapeOf(t, Config{})
	before := slices.Concat(wholeGroups[0], wholeGroups[1])
	for subset := range 1 << 10 {
		types := slices.Clone(before)
		for _, bits := range []int{subset & 31, subset >> 5} {
			for i, kind := range wholeGroups[bits>>4] {
				if bits>>i&1 != 0 {
					types = append(types, kind)
				}
			}
		}
		types = append(types, before...)
		var want oracle.Torn
		for _, kind := range types {
			want.Add(kind)
		}
		for split := range types {
			agent := NewAgent(s)
			feed(t, agent, ringbuf.V4, typed(types...), split)
			if got := agent.TornGroups(); got != want.Count() {
				t.Fatalf("%v in batches of %d and the rest: %d torn groups, want %d", types, split, got, want.Count())
			}
		}
	}
}

// An event that doesn't belong to a transfer separates groups, so the next group is seen
// from its beginning.
func TestOtherEventEndsAGap(t *testing.T) {
	agent := NewAgent(shapeOf(t, Config{}))
	feed(t, agent, ringbuf.V4, typed(post, took, txSize, txReq))
	agent.Missed()
	feed(t, agent, ringbuf.V4, typed(ringbuf.TypeMemoryRegistered, took, txSize, txReq))
	if got := agent.TornGroups(); got != 1 {
		t.Errorf("%d torn groups, want 1", got)
	}
}

// An alert can then fire on the first one. Other layouts don't show them.
func TestTornGroupsAreReportedFromZeroOnInTheirLayout(t *testing.T) {
	for torn, layouts := range map[uint64][]ringbuf.Layout{0: {ringbuf.V4}, 1: ringbuf.Layouts()} {
		agent := NewAgent(shapeOf(t, Config{}))
		agent.health.torn = torn
		var got []ringbuf.Layout
		for _, l := range ringbuf.Layouts() {
			agent.RingPoints(l, func(p *Point) {
				if p.Metric == &semconv.RingTornGroups && p.Int == int64(torn) {
					got = append(got, l)
				}
			})
		}
		if !slices.Equal(got, layouts) {
			t.Errorf("%d torn groups are reported in layouts %v, want %v", torn, got, layouts)
		}
	}
}
