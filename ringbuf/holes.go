// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// A ring's file has holes until its agent has written every slot once. On tmpfs, reading a hole through a mapping
// allocates a page. The kernel charges it to the reader, and it stays allocated as long as the file exists. Agents write
// slots in order, so a Reader accesses a slot only if the file has allocated as many bytes as there are up to it.
// A process that allocates other parts of the file makes a reader allocate at most as much as it has allocated itself.
//
// The Reader must not look for the holes: lseek waits for the lock of the file, which any process that can write to the
// file holds for as long as it likes, for example with fallocate. fstat never blocks on it.

// extent is what a ring's file has allocated.
type extent struct {
	allocated int64 // bytes, as far as this reader knows
	left      int   // bytes to read before it is determined again
}

// recheckBytes is the number of bytes that are read between two checks of what a file has
// allocated. A process can make holes in a file at any time.
const recheckBytes = 256 << 10

// hugePage is the largest unit in which a file system allocates memory. More space beyond the end of a file only serves
// to make the kernel work while it has locked the file or a page of it.
const hugePage = 2 << 20

// checkWritten returns an [ErrHole] if any of n slots, starting at from, was never written.
// Call it before accessing slots that weren't accessed before in this lap.
func (r *Reader) checkWritten(from uint64, n int) error {
	file, ok := r.backing.(fileBacking)
	if !ok || n == 0 || !file.charges() {
		return nil
	}
	size := int64(len(r.mem))
	end := size
	if last := int(from) + n; last <= r.Capacity() {
		end = r.offset(last)
	}
	e := &r.extent
	if e.left -= n * r.layout.EventSize(); e.left >= 0 && end <= e.allocated {
		return nil
	}
	now, err := file.Stat()
	if err != nil {
		return err
	}
	switch e.left, e.allocated = recheckBytes, now.Allocated; {
	case now.Size < size:
		return ErrShrunk
	case now.Allocated > (size+hugePage-1)/hugePage*hugePage:
		return fmt.Errorf("%w: the file has %d bytes, but has allocated %d; remove the file, and restart its agent", ErrInvalid, size, now.Allocated)
	case now.Allocated < end:
		return fmt.Errorf("%w: it has allocated %d of %d bytes; remove the file, and restart its agent if there is one", ErrHole, now.Allocated, end)
	}
	return nil
}

// offset returns the offset of a slot in the file.
func (r *Reader) offset(slot int) int64 {
	return HeaderSize + int64(slot)*int64(r.layout.EventSize())
}
