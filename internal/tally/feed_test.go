// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// configs are the configurations that most tests use.
func configs() map[string]Config {
	none, many := HistogramConfig{Kind: NoHistogram}, make([]float64, 100)
	for i := range many {
		many[i] = float64(i+1) * 1000
	}
	return map[string]Config{
		"default":     {},
		"many bounds": {Size: HistogramConfig{Bounds: many}},
		"few names":   {MaxNames: 2},
		"none":        {Duration: none, Size: none},
		"exponential": {Duration: HistogramConfig{Kind: Exponential, MaxSize: 20}, Size: HistogramConfig{Kind: Exponential}},
	}
}

func shapeOf(tb testing.TB, c Config) *Shape {
	tb.Helper()
	s, err := NewShape(c)
	must.OK(tb, err)
	return s
}

func batchOf(tb testing.TB, l ringbuf.Layout, events ...ringbuf.Event) ringbuf.Batch {
	tb.Helper()
	b, err := ringbuf.MakeBatch(l, events)
	must.OK(tb, err)
	return b
}

// feed counts events in batches of the given sizes, and the rest in one batch.
func feed(tb testing.TB, a *Agent, l ringbuf.Layout, events []ringbuf.Event, batches ...int) {
	tb.Helper()
	for _, n := range append(batches, len(events)) {
		n = min(n, len(events))
		a.Add(batchOf(tb, l, events[:n]...))
		events = events[n:]
	}
}
