// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// takeOverAfter is the time for a Collector that is already running to find the rings, and the time
// between two attempts to open a ring that has another consumer.
const takeOverAfter = 2 * time.Second

// consume takes the events of simulated agents until ctx is done, so that their rings don't fill up.
// It tries to open rings after some time, and again after the same time if they have another consumer.
func consume(ctx context.Context, paths []string, interval, after time.Duration) {
	readers := make(map[string]*ringbuf.Reader)
	defer func() {
		for _, r := range readers {
			_ = r.Close()
		}
	}()
	tick := time.NewTicker(max(interval/2, time.Millisecond))
	defer tick.Stop()
	for opened := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for path, r := range readers {
			_, err := r.Read(0, func(ringbuf.Batch) {})
			if err == nil {
				err = r.Commit()
			}
			if err != nil { // such as a restart of the agent
				_ = r.Close()
				delete(readers, path)
			}
		}
		if time.Since(opened) < after {
			continue
		}
		opened = time.Now()
		for _, path := range paths {
			if readers[path] == nil {
				if r, err := ringbuf.OpenReader(path, ringbuf.Consume); err == nil {
					readers[path] = r
				}
			}
		}
	}
}
