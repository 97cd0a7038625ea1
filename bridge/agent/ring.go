// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nixl-otel/nixl-otel/bridge/internal/flock"
	"github.com/nixl-otel/nixl-otel/internal/files"
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

// ringWriter writes a ring as a NIXL agent does. A ring must have only one writer, so a Go
// agent locks its file. The kernel releases the lock when the process ends.
type ringWriter struct {
	*ringbuf.Writer
	lock *os.File
}

func createRing(path string, layout ringbuf.Layout, capacity int) (*ringWriter, error) {
	lock, err := lockRing(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w, err := ringbuf.Create(path, layout, capacity)
	if err == nil && lock == nil {
		if lock, err = lockRing(path); err != nil {
			err = errors.Join(err, w.Close())
		}
	}
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	return &ringWriter{w, lock}, nil
}

// lockRing locks a ring's file if it exists.
func lockRing(path string) (*os.File, error) {
	f, err := files.Open(path, os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("ring %s: %w", path, err)
	case !flock.Own(f):
		return nil, errors.Join(fmt.Errorf("ring %s: a running agent writes to it, in this or another process; share that agent, or use another name or directory", path), f.Close())
	}
	return f, nil
}

func (r *ringWriter) Close() error { return errors.Join(r.Writer.Close(), r.lock.Close()) }
