// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet is the source of what nixlring top, why, web and slow show: frames of agents, which come from
// rings or from a recording. A [Board] computes rates and findings from the newest frames.
package fleet

import (
	"context"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Source returns frames. Its methods must not be called concurrently.
type Source interface {
	// Next waits until the next frame is due, and returns it. At the end of a recording, the error is [io.EOF].
	// Any other error is temporary, unless ctx is done.
	Next(ctx context.Context) (*diagnose.Frame, error)
	// Name returns what is watched.
	Name() string
	Close() error
}

// Config selects agents.
type Config struct {
	Directory   string   // of rings; empty to discover agents
	Kubelet     string   // the directory of pods to discover them in; empty to discover those of all processes
	Include     []string // valid doublestar patterns
	RunInterval time.Duration
	Interval    time.Duration // between two frames
	// Slow selects the transfers in frames. If it is nil, a frame has the slowest of each agent.
	Slow *tally.Slow
	Now  func() time.Time // time.Now if nil
	Proc string           // mount point of procfs; /proc if empty
}

// Frames have a few of the slowest transfers of an agent, or all slow ones up to a limit.
const (
	mostSlowest = 10
	mostSlow    = 1 << 16
)

// ownTally returns the configuration of totals whose histograms have the bounds of this package.
func ownTally() tally.Config {
	return tally.Config{
		Duration:   tally.HistogramConfig{Bounds: timeBounds},
		Size:       tally.HistogramConfig{Bounds: semconv.TransferSize.Bounds},
		Throughput: tally.HistogramConfig{Bounds: speedBounds},
	}
}

// timeBounds are the bounds of histograms of times, in seconds, and speedBounds those of throughput, in
// bytes per second. They are finer than those of the metrics: ten per decade.
var (
	timeBounds  = makeBounds(1_000, 100_000_000_000, 1e9)  // ns: 1 µs to 100 s
	speedBounds = makeBounds(1_000, 10_000_000_000_000, 1) // 1 kB/s to 10 TB/s
)

func makeBounds(first, last int64, perUnit float64) (b []float64) {
	for decade := first; decade < last; decade *= 10 {
		for _, step := range []int64{100, 125, 150, 200, 250, 300, 400, 500, 600, 800} {
			v := decade * step / 100
			if v%first == 0 || decade > first { // the ring counts whole microseconds
				b = append(b, float64(v)/perUnit)
			}
		}
	}
	return append(b, float64(last)/perUnit)
}

// wait waits until a time, and reports whether ctx isn't done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
