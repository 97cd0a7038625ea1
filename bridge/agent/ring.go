// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// RingTelemetry counts the events that an [Agent] wrote to its ring or dropped.
// Staged events aren't included.
type RingTelemetry struct {
	Written        uint64 // written to the ring
	DroppedStaging uint64 // dropped because the staging buffer was full, or the agent was just being closed
	DroppedRing    uint64 // dropped because the ring was full (no reader, or a slow one) or its file is broken
	DroppedSinks   uint64 // dropped because a sink returned an error
}

// RingTelemetry returns the counts since the agent was created. Without a ring, it
// only counts events that were dropped instead of being passed to sinks.
func (a *Agent) RingTelemetry() RingTelemetry {
	if a == nil || a.buffer == nil {
		return RingTelemetry{}
	}
	a.buffer.staging.Lock()
	defer a.buffer.staging.Unlock()
	return a.buffer.totals
}

// ringWriter writes a ring as a NIXL agent does.
type ringWriter struct {
	*ringbuf.Writer
	file os.FileInfo
}

// writers are the rings that this process writes. A ring must have only one writer.
var writers struct {
	mu   sync.Mutex
	open []*ringWriter
}

func createRing(path string, capacity int) (*ringWriter, error) {
	writers.mu.Lock()
	defer writers.mu.Unlock()
	if file, err := os.Stat(path); err == nil {
		for _, o := range writers.open {
			if os.SameFile(file, o.file) {
				return nil, fmt.Errorf("ring %s: an open agent of this process writes to it as %s; share that agent, or use another name", path, o.Path())
			}
		}
	}
	w, err := ringbuf.Create(path, ringbuf.V4, capacity)
	if err != nil {
		return nil, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r := &ringWriter{w, file}
	writers.open = append(writers.open, r)
	return r, nil
}

func (r *ringWriter) Close() error {
	writers.mu.Lock()
	defer writers.mu.Unlock()
	writers.open = slices.DeleteFunc(writers.open, func(o *ringWriter) bool { return o == r })
	return r.Writer.Close()
}
