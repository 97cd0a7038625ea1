// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet is the source of what nixlring top, why, web and slow show: frames of agents, which come from
// rings, from a recording or from a backend. A [Board] computes rates and findings from the newest frames.
package fleet

import (
	"context"
	"math"
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
	// Name describes what is watched. Like the names and notes in frames, it has only printable characters.
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
	// Slow is the time above which all transfers are in frames. The others are only if they are the slowest of an agent.
	Slow time.Duration
	Now  func() time.Time // time.Now if nil
	Proc string           // mount point of procfs; /proc if empty
}

// Limits of the transfers of an agent in a frame.
const (
	mostSlowest = 10
	mostSlow    = 1 << 16
)

// ownTally returns the configuration of totals whose histograms have the bounds of this package.
func ownTally() tally.Config {
	return tally.Config{
		Duration:   tally.HistogramConfig{Bounds: timeBounds},
		Size:       tally.HistogramConfig{Bounds: semconv.TransferSize.Bounds},
		Throughput: tally.HistogramConfig{Kind: tally.NoHistogram},
	}
}

// timeBounds are the bounds of histograms of times, from 1 µs to 100 s, in seconds. They are finer than those of the
// metrics: ten per decade.
var timeBounds = makeTimeBounds()

func makeTimeBounds() (b []float64) {
	const unit, last = 1e6, 100 * 1e6 // µs
	for decade := 1.0; decade < last; decade *= 10 {
		for _, step := range []float64{1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
			if micros := step * decade; micros == math.Trunc(micros) { // the ring counts whole microseconds
				b = append(b, micros/unit)
			}
		}
	}
	return append(b, last/unit)
}

// wait waits until a time, and reports whether ctx isn't done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
