// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// What agents do unless they are told otherwise.
const (
	DefaultCapacity    = 4096                   // NIXL's NIXL_TELEMETRY_BUFFER_SIZE
	DefaultRunInterval = 100 * time.Millisecond // NIXL's NIXL_TELEMETRY_RUN_INTERVAL
)

// Life is the part of an agent's configuration that may change when it starts
// anew on the same ring file: another release, another buffer size.
type Life struct {
	Layout   ringbuf.Layout // V4 if 0
	Capacity int            // slots of the ring and of staging; a power of two; DefaultCapacity if 0
}

// Config is one agent.
type Config struct {
	Path  string // of the ring; its directory must exist
	Lives []Life // the first life, the second, …, and round again; one of all defaults if empty

	RunInterval  time.Duration // between two flushes; DefaultRunInterval if 0
	Rate         float64       // operations per second; 0 is an agent that only registers memory
	Bursts       Bursts        // times of a higher rate
	RestartEvery time.Duration // how long a life lasts; 0 is for ever
	Duration     time.Duration // how long all lives last together; 0 is for ever
	Operations   uint64        // the limit on operations; 0 is none
	NoFinalFlush bool          // don't push what was staged since the last flush when a life ends, as NIXL 0.9.0 and later

	Traffic Traffic // KVCache() if zero
	Seed    uint64
	Stream  uint64 // tells agents of one seed apart

	// Now is the clock: the times of layout V1, and the pace of Run. It is
	// time.Now if nil.
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

// MaxRate is the highest rate of an agent, in operations per second. It is far
// above what a machine can write.
const MaxRate = 1e9

func (c *Config) validate() error {
	switch {
	case c.Path == "":
		return errors.New("an agent needs the path of its ring")
	case c.RunInterval < 0 || c.RestartEvery < 0 || c.Duration < 0:
		return errors.New("an interval or a duration is negative")
	case !(c.Rate >= 0 && c.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v operations/s is not between 0 and %.0f", c.Rate, MaxRate)
	case c.Rate == 0 && c.Operations > 0 && c.Duration == 0:
		return fmt.Errorf("at a rate of 0, %d operations never come to pass", c.Operations)
	case c.RestartEvery > 0 && c.RestartEvery < c.RunInterval:
		return fmt.Errorf("a life of %v ends before its first flush after %v", c.RestartEvery, c.RunInterval)
	}
	if err := c.Bursts.validate(c.Rate); err != nil {
		return err
	}
	return c.Traffic.validate()
}

// operationsBy is the number of operations that are done when an agent has
// been up for a given time.
func (c *Config) operationsBy(up time.Duration) uint64 {
	const rounding = 1e-6 // 0.7 s at 10,000/s are 7,000, not 6,999
	n := uint64(math.Floor(c.Bursts.worked(up).Seconds()*c.Rate + rounding))
	if c.Operations > 0 {
		n = min(n, c.Operations)
	}
	return n
}

// doneAt is where on the timeline an operation ends, given its number.
func (c *Config) doneAt(n uint64) time.Duration {
	return c.Bursts.when(time.Duration(float64(n) / c.Rate * float64(time.Second)))
}

// rateAt is the rate at a point of the timeline.
func (c *Config) rateAt(up time.Duration) float64 {
	if c.Bursts.inside(up) {
		return c.Rate * c.Bursts.Factor
	}
	return c.Rate
}
