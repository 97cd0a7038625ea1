// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// recall calls fn with the events in a ring that were consumed and that its agent hasn't overwritten, oldest first. An
// observer that begins to watch learns from them what the agent did before. They may be from before a restart of the
// agent. recall reads the file once, without mapping it. There are none if the agent has started but written no event.
func recall(path string, fn func(ringbuf.Batch)) error {
	f, err := files.Open(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("open ring %s: %w", path, err)
	}
	defer f.Close()
	ring, err := consumed(f)
	if err != nil || ring == nil {
		return err
	}
	r, err := ringbuf.NewReader(ring, copied(len(ring)), ringbuf.Observe)
	if err != nil {
		return err
	}
	_, err = r.Read(0, fn)
	return err
}

// consumed returns a copy of a ring in which the consumed events are the pending ones, or nil if there are none.
func consumed(f *os.File) ([]byte, error) {
	before, err := ringbuf.PeekFile(f)
	if err != nil || before.WritePos == 0 && before.ReadPos == 0 {
		return nil, err
	}
	layout := ringbuf.Layout(before.Version)
	ring := make([]byte, layout.FileSize(before.Capacity))
	if _, err := f.ReadAt(ring, 0); err != nil {
		return nil, fmt.Errorf("read ring %s: %w", f.Name(), err)
	}
	after, err := ringbuf.PeekFile(f)
	if err != nil || after.Version != before.Version || after.Capacity != before.Capacity {
		return nil, err
	}
	// The agent writes to the slot at the write position, and may have overwritten those that it has passed meanwhile.
	first := (after.WritePos-before.WritePos)&before.Mask + 1
	end := (before.ReadPos - before.WritePos) & before.Mask
	if end == 0 {
		end = before.Capacity
	}
	position := func(i uint64) uint64 { return (before.WritePos + i) & before.Mask }
	size := uint64(layout.EventSize())
	for ; first < end; first++ { // the first lap may be incomplete
		slot := ring[ringbuf.HeaderSize+position(first)*size:][:size]
		if len(bytes.TrimLeft(slot, "\x00")) > 0 {
			break
		}
	}
	if first >= end {
		return nil, nil
	}
	binary.LittleEndian.PutUint64(ring[0:], position(end))
	binary.LittleEndian.PutUint64(ring[8:], position(first))
	return ring, nil
}

// copied is the size of a copy of a ring, as [ringbuf.Backing].
type copied int

func (c copied) Stat() (ringbuf.FileState, error) { return ringbuf.FileState{Size: int64(c)}, nil }
func (copied) Now() time.Time                     { return time.Now() }
func (copied) Guard(fn func()) error              { fn(); return nil }
