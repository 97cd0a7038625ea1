// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Defaults of a [Config]. They equal NIXL's defaults.
const (
	DefaultCapacity    = 4096                   // NIXL_TELEMETRY_BUFFER_SIZE
	DefaultRunInterval = 100 * time.Millisecond // NIXL_TELEMETRY_RUN_INTERVAL
)

// Life is the part of an agent's configuration that may change when the agent restarts on the
// same ring file, for example with another release or buffer size.
type Life struct {
	Layout   ringbuf.Layout // default: V4
	Capacity int            // slots of the ring and of staging, a power of two; default: DefaultCapacity
}

// Config configures one agent.
type Config struct {
	Path  string // path of the ring; its directory must exist
	Lives []Life // configurations of successive lives, used cyclically; default: one default life

	RunInterval  time.Duration // time between two flushes; default: DefaultRunInterval
	Rate         float64       // operations per second; with 0, the agent only registers memory
	Stalled      Phase         // without operations
	RestartEvery time.Duration // duration of a life; 0 means unlimited
	Duration     time.Duration // total duration of all lives; 0 means unlimited
	Operations   uint64        // maximum number of operations; 0 means unlimited
	NoFinalFlush bool          // discard staged events at the end of a life, like NIXL 0.9.0 and later

	Traffic Traffic // default: KVCache()
	Seed    uint64
	Stream  uint64 // distinguishes agents with the same seed

	// Journal gets every event that reaches the ring, if it isn't nil. Points returns its
	// points.
	Journal *oracle.Oracle

	// Now is the clock for times in layout V1 and for Run. The default is time.Now.
	Now func() time.Time
}

func (c *Config) setDefaults() {
	if len(c.Lives) == 0 {
		c.Lives = make([]Life, 1)
	}
	lives := make([]Life, len(c.Lives))
	for i, l := range c.Lives {
		if l.Layout == 0 {
			l.Layout = ringbuf.V4
		}
		if l.Capacity == 0 {
			l.Capacity = DefaultCapacity
		}
		lives[i] = l
	}
	c.Lives = lives
	if c.RunInterval == 0 {
		c.RunInterval = DefaultRunInterval
	}
	if c.Traffic == (Traffic{}) {
		c.Traffic = KVCache()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// MaxRate is the maximum rate of an agent, in operations per second. It is far above what a
// machine can write.
const MaxRate = 1e9

func (c *Config) validate() error {
	switch {
	case c.Path == "":
		return errors.New("path of the ring is missing")
	case c.RunInterval < 0 || c.RestartEvery < 0 || c.Duration < 0:
		return errors.New("an interval or a duration is negative")
	case !(c.Rate >= 0 && c.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v operations/s is not between 0 and %.0f", c.Rate, MaxRate)
	case c.Rate == 0 && c.Operations > 0 && c.Duration == 0:
		return fmt.Errorf("at a rate of 0, %d operations never happen", c.Operations)
	case c.RestartEvery > 0 && c.RestartEvery < c.RunInterval:
		return fmt.Errorf("a life of %v ends before its first flush after %v", c.RestartEvery, c.RunInterval)
	}
	if c.Stalled.Every > 0 && c.Stalled.For >= c.Stalled.Every {
		return fmt.Errorf("an agent that stalls for %v of %v never does anything", c.Stalled.For, c.Stalled.Every)
	}
	return nil
}

// operationsBy returns the number of operations up to a point on the timeline.
func (c *Config) operationsBy(up time.Duration) uint64 {
	const rounding = 1e-6 // 0.7 s at 10,000/s must give 7,000, not 6,999
	n := uint64(math.Floor(c.Stalled.outside(up).Seconds()*c.Rate + rounding))
	if c.Operations > 0 {
		n = min(n, c.Operations)
	}
	return n
}

// doneAt returns the end of operation n on the timeline.
func (c *Config) doneAt(n uint64) time.Duration {
	return c.Stalled.when(time.Duration(float64(n) / c.Rate * float64(time.Second)))
}
