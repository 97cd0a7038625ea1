// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// consumer takes the events of simulated agents, so that their rings don't fill up. A ring that has
// another consumer is left to it.
type consumer struct {
	paths   []string
	readers []*ringbuf.Reader // nil for a ring that isn't open
}

// takeOverAfter is the time for a Collector that is already running to find the rings, and the time
// between two attempts to open a ring that has another consumer.
const takeOverAfter = 2 * time.Second

func newConsumer(paths []string) *consumer {
	return &consumer{paths: paths, readers: make([]*ringbuf.Reader, len(paths))}
}

// run consumes events until ctx is done.
func (c *consumer) run(ctx context.Context, interval time.Duration) {
	defer c.close()
	open := time.NewTicker(takeOverAfter)
	defer open.Stop()
	drain := time.NewTicker(max(interval/2, time.Millisecond))
	defer drain.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-open.C:
			c.open()
		case <-drain.C:
			c.drain()
		}
	}
}

func (c *consumer) open() {
	for i, path := range c.paths {
		if c.readers[i] != nil {
			continue
		}
		if r, err := ringbuf.OpenReader(path, ringbuf.Consume); err == nil {
			c.readers[i] = r
		}
	}
}

// drain consumes all events. A ring that can't be read, because its agent has restarted, is opened
// again later.
func (c *consumer) drain() {
	for i, r := range c.readers {
		if r == nil {
			continue
		}
		_, err := r.Read(0, func(ringbuf.Batch) {})
		if err == nil {
			err = r.Commit()
		}
		if err != nil {
			_ = r.Close()
			c.readers[i] = nil
		}
	}
}

func (c *consumer) close() {
	for _, r := range c.readers {
		if r != nil {
			_ = r.Close()
		}
	}
}
