// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "hash/crc32"

// rememberRun keeps a checksum of the slots that were read, as long as readPos can't
// show a restart. It adds only the slots that were read since the last call.
func (r *Reader) rememberRun() {
	switch {
	case r.mode == Observe:
		r.sum, r.sumTo = r.checksum(r.next), r.next
	case r.committed == 0:
		r.sum, r.sumTo = r.extend(r.sum, r.sumTo, r.next), r.next
	}
}

// sameRun reports whether the slots that were read are unchanged. While readPos is
// 0, the positions are the same for a restarted agent that has written as many
// events as were read. But only a restarted agent can have overwritten those slots.
func (r *Reader) sameRun() bool {
	return r.committed != 0 || r.sumTo == 0 || r.checksum(r.sumTo) == r.sum
}

// maxObserved limits the number of slots that an observer's checksum covers.
const maxObserved = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns a checksum of the slots before a position. A consumer needs all of
// them, because nothing else may show a restart: two runs of equal length can also end
// with the same events. For an observer, it covers the newest ones.
func (r *Reader) checksum(to uint64) uint32 {
	from := uint64(0)
	if r.mode == Observe && to > maxObserved {
		from = to - maxObserved
	}
	return r.extend(0, from, to)
}

// extend returns the checksum sum, extended by the slots between two positions.
func (r *Reader) extend(sum uint32, from, to uint64) uint32 {
	size := uint64(r.layout.EventSize())
	for from != to {
		end := to
		if end < from {
			end = r.mask + 1
		}
		sum = crc32.Update(sum, castagnoli, r.slots[from*size:end*size])
		from = end & r.mask
	}
	return sum
}
