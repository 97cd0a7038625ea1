//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
)

// Committed is the slot after the last event that was committed.
func (r *Reader) Committed() uint64 { return r.committed }

// CommitTo is [Reader.Commit] for the events up to a position that
// [Reader.Position] returned earlier. Those read since stay uncommitted.
func (r *Reader) CommitTo(position uint64) error {
	ahead := r.distance(r.committed, r.next)
	if position > r.mask || r.distance(r.committed, position) > ahead {
		return fmt.Errorf("commit ring %s: %w: position %d was not read", r.path, ErrInvalid, position)
	}
	from, next := r.committed, r.next
	r.next = position
	err := r.Commit()
	if foreign := (*ForeignReadError)(nil); errors.As(err, &foreign) && r.distance(from, foreign.To) > ahead {
		return err // the reader goes on behind the foreign one, which Commit has seen to
	}
	r.next = next
	r.moved()
	return err
}

// Skip passes over pending events up to a position without handing them out:
// somebody has read them already. They are uncommitted afterwards. The error
// is [ErrInvalid] if so many aren't pending.
func (r *Reader) Skip(position uint64) (err error) {
	if r.mem == nil {
		return fmt.Errorf("skip in ring %s: %w", r.path, ErrClosed)
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	s, err := r.look()
	if err != nil {
		return err
	}
	if position > r.mask || r.distance(r.next, position) > s.pending {
		return fmt.Errorf("skip in ring %s: %w: there are %d events after position %d, too few to reach %d",
			r.path, ErrInvalid, s.pending, r.next, position)
	}
	r.next = position
	r.moved()
	r.remember()
	return nil
}

// maxFingerprint bounds the slots that a fingerprint is made of: those of some
// transfers, with the microseconds that they took.
const maxFingerprint = 64

// Fingerprint is a checksum of the newest slots between two positions. Where
// an agent has written other events there since, it is another, so that it
// tells one run of an agent from the next. The error is [ErrRestarted] where that
// has begun already, [ErrShrunk], [ErrInvalid] or [ErrClosed].
func (r *Reader) Fingerprint(from, to uint64) (sum uint32, err error) {
	if r.mem == nil {
		return 0, fmt.Errorf("fingerprint of ring %s: %w", r.path, ErrClosed)
	}
	if from > r.mask || to > r.mask {
		return 0, fmt.Errorf("fingerprint of ring %s: %w: there is no slot %d", r.path, ErrInvalid, max(from, to))
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	if !r.sameRun() {
		return 0, r.restarted()
	}
	return r.checksum(from, to), nil
}

// checksum is Fingerprint for whoever has seen to the rest.
func (r *Reader) checksum(from, to uint64) (sum uint32) {
	size := uint64(r.layout.EventSize())
	if n := uint64(r.distance(from, to)); n > maxFingerprint {
		from = (to - maxFingerprint) & r.mask
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	for from != to {
		end := to
		if end < from {
			end = r.mask + 1
		}
		sum = crc32.Update(sum, table, r.slots[from*size:end*size])
		from = end & r.mask
	}
	return sum
}

// remember keeps a checksum of what was read of a ring that was never
// committed, for sameRun.
func (r *Reader) remember() {
	if r.mode == Consume && r.committed == 0 {
		r.seen, r.seenTo = r.checksum(0, r.next), r.next
	}
}

// sameRun says whether what was read still stands in the ring. Where the read
// position is 0, that of an agent that starts anew, positions don't tell such
// an agent from the old one once it has written as much as was read. But it has
// written over what was read, and an agent that goes on can't: nothing of that
// was committed.
func (r *Reader) sameRun() bool {
	return r.committed != 0 || r.seenTo == 0 || r.checksum(0, r.seenTo) == r.seen
}
