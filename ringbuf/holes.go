// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// A ring's file has holes until its agent has written every slot once. On tmpfs, reading a
// hole through a mapping allocates a page. The kernel charges it to the reader, and it stays
// allocated as long as the file exists. So a Reader accesses slots only after the file
// system has confirmed that they were written. Agents write slots in order, so one position
// in the file is enough to remember.

// extent is the part of a ring's file that was written.
type extent struct {
	end       int64 // offset of the first hole, as far as this reader knows
	allocated int64 // what the file had allocated when end was last set to 0
	left      int   // bytes to read before allocated is compared again
}

// recheckBytes is the number of bytes that are read between two checks of what a file has
// allocated. A process can make holes in a file at any time, which changes that.
const recheckBytes = 256 << 10

// checkWritten returns an [ErrHole] if any of n slots, starting at from, was never written.
// Call it before accessing slots that weren't accessed before in this lap.
func (r *Reader) checkWritten(from uint64, n int) error {
	file, ok := r.backing.(fileBacking)
	if !ok || n == 0 {
		return nil // memory has no holes
	}
	end := int64(len(r.mem))
	if last := int(from) + n; last <= r.Capacity() {
		end = r.offset(last)
	}
	if r.extent.left -= n * r.layout.EventSize(); r.extent.left < 0 {
		if err := r.recheck(file); err != nil {
			return err
		}
	}
	if end <= r.extent.end {
		return nil
	}
	hole, err := file.nextHole(r.extent.end)
	if err != nil {
		return err
	}
	if r.extent.end = hole; end <= hole {
		return nil
	}
	if state, err := file.Stat(); err == nil && state.Size < int64(len(r.mem)) {
		return ErrShrunk
	}
	return fmt.Errorf("%w at byte %d of the file; remove the file, and restart its agent if there is one", ErrHole, hole)
}

// recheck discards what is known about a file that has changed.
func (r *Reader) recheck(file fileBacking) error {
	now, err := file.Stat()
	if err != nil {
		return err
	}
	e := &r.extent
	e.left = recheckBytes
	if now.Allocated != e.allocated {
		e.end, e.allocated = 0, now.Allocated
	}
	return nil
}

// offset returns the offset of a slot in the file.
func (r *Reader) offset(slot int) int64 {
	return HeaderSize + int64(slot)*int64(r.layout.EventSize())
}
