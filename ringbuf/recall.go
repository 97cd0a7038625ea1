// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"os"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Recall returns the events in a ring that were consumed and that its agent hasn't overwritten, oldest first. An
// observer that begins to watch learns from them what the agent did before. They may be from before a
// restart of the agent. Recall reads the file once, without mapping it. It returns nothing if the agent has started
// but written no event.
func Recall(path string) (Batch, error) {
	f, err := files.Open(path, os.O_RDONLY)
	if err != nil {
		return Batch{}, fmt.Errorf("open ring %s: %w", path, err)
	}
	defer f.Close()
	b, err := recall(f)
	if err != nil {
		return Batch{}, fmt.Errorf("read ring %s: %w", path, err)
	}
	return b, nil
}

func recall(f *os.File) (Batch, error) {
	_, before, state, err := identifyFile(f)
	b := Batch{layout: Layout(before.Version)}
	if err != nil || before.WritePos == 0 && before.ReadPos == 0 {
		return b, err
	}
	file, err := readAt(f, 0, state.Size)
	if err != nil {
		return b, err
	}
	_, after, _, err := identifyFile(f)
	if err != nil || after.Version != before.Version || after.Capacity != before.Capacity {
		return b, err
	}
	size, slots := b.layout.EventSize(), file[HeaderSize:]
	// The agent writes to the slot at WritePos, and may have overwritten those that it has passed meanwhile.
	written := (after.WritePos - before.WritePos) & before.Mask
	consumed := (before.ReadPos - before.WritePos) & before.Mask
	if before.ReadPos == before.WritePos {
		consumed = before.Capacity
	}
	for i := written + 1; i < consumed; i++ {
		at := int((before.WritePos+i)&before.Mask) * size
		if slot := slots[at : at+size]; !isZero(slot) || len(b.slots) > 0 { // the first lap may be incomplete
			b.slots = append(b.slots, slot...)
		}
	}
	return b, nil
}
