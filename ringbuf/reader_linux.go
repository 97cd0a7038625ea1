//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reader reads one ring. It isn't safe for concurrent use.
type Reader struct {
	path   string
	id     FileID
	info   fs.FileInfo
	owner  uint32
	mode   Mode
	layout Layout
	mask   uint64 // checked when the ring was opened; the header's is not looked at again

	file  *os.File
	mem   []byte // the whole file; nil once closed
	hdr   *header
	slots []byte
	copy  []byte // where an observer copies slots to; the agent may overwrite them

	next      uint64 // up to where events were handed out
	committed uint64 // what readPos holds, as far as this reader knows
}

// OpenReader opens the ring at path.
//
// The error wraps what is wrong: [ErrNotReady] asks to try again later;
// [ErrNotRing], [ErrNotRegular], [ErrInvalid] and [UnknownVersionError] are
// what the file is; [PermissionError] and [LockedError] say who stands in the
// way.
func OpenReader(path string, mode Mode) (*Reader, error) {
	r := &Reader{path: path, mode: mode}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("open ring %s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) open() (err error) {
	f, st, err := openChecked(r.path, r.mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	h, err := readHeader(f, st.Size)
	if err != nil {
		return err
	}
	if r.layout, err = h.layout(st.Size); err != nil {
		return err
	}
	prot := unix.PROT_READ
	if r.mode == Consume {
		if err := lock(f, st); err != nil {
			return err
		}
		prot |= unix.PROT_WRITE
	}
	if r.info, err = f.Stat(); err != nil {
		return err
	}
	mem, err := mapFile(f, st.Size, prot)
	if err != nil {
		return err
	}
	r.file, r.mem, r.mask = f, mem, h.Mask
	r.id, r.owner = FileID{Dev: st.Dev, Ino: st.Ino}, st.Uid
	r.hdr = (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	r.slots = mem[headerSize:]
	r.next, r.committed = h.ReadPos, h.ReadPos
	return nil
}

// Path is the path that the ring was opened by.
func (r *Reader) Path() string { return r.path }

// ID tells the ring's file from others that have or had the same path.
func (r *Reader) ID() FileID { return r.id }

// SameFile says whether info, as os.Lstat gives it, is of the file that this
// reader has open.
func (r *Reader) SameFile(info fs.FileInfo) bool { return os.SameFile(r.info, info) }

// Owner is the uid that the ring's file belongs to.
func (r *Reader) Owner() uint32 { return r.owner }

// Layout is the ring's layout.
func (r *Reader) Layout() Layout { return r.layout }

// Capacity is the number of slots. The ring holds at most one event less.
func (r *Reader) Capacity() int { return int(r.mask) + 1 } //nolint:gosec // bounded by maxCapacity

// Uncommitted is the number of events that were read and still stand in the
// ring.
func (r *Reader) Uncommitted() int { return r.distance(r.committed, r.next) }

// Position is the slot after the last event that was read.
func (r *Reader) Position() uint64 { return r.next }

func (r *Reader) distance(from, to uint64) int { return int((to - from) & r.mask) } //nolint:gosec // bounded by maxCapacity

// Read hands the pending events to fn, oldest first, in at most two batches,
// and at most limit of them (0 is no limit). It returns how many events stood
// in the ring when it looked, those that were read but not committed included.
//
// The error is [ErrRestarted], [ErrShrunk] or [ErrInvalid] where the ring has
// to be opened again, a [ForeignReadError] where the reader has gone on behind
// somebody else, and [ErrClosed]. Events that fn has seen are to be kept in
// every case.
//
// An observer copies the events first. Where the agent overwrites them
// meanwhile it leaves them out and returns [ErrLapped].
func (r *Reader) Read(limit int, fn func(Batch)) (fill int, err error) {
	if r.mem == nil {
		return 0, fmt.Errorf("read ring %s: %w", r.path, ErrClosed)
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	fill, pending, err := r.look()
	if err != nil || pending == 0 {
		return fill, err
	}
	if limit > 0 && pending > limit {
		pending = limit
	}
	if r.mode == Observe {
		return fill, r.handCopy(pending, fn)
	}
	r.hand(r.slots, pending, fn)
	return fill, nil
}

// catch turns a fault in mapped memory into an error. It must be deferred.
func (r *Reader) catch(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		if !faultIn(r.mem, v) {
			panic(v)
		}
		*err = fmt.Errorf("ring %s: %w; it is opened again when its agent has made it anew", r.path, ErrShrunk)
	}
}

// look checks the header and tells how many events stand in the ring and how
// many of them are new.
func (r *Reader) look() (fill, pending int, err error) {
	// Acquire: pairs with the agent's release store after it wrote the slot.
	write := atomic.LoadUint64(&r.hdr.writePos)
	read := atomic.LoadUint64(&r.hdr.readPos)
	if write == 0 && r.next != 0 {
		// Either the ring has wrapped, or an agent that starts anew has stored
		// writePos and is about to store readPos and the version.
		read = r.settle()
	}
	if !r.sameRing() {
		return 0, 0, r.restarted()
	}
	if write > r.mask || read > r.mask {
		return 0, 0, fmt.Errorf("ring %s: %w: write position %d or read position %d is beyond the last slot %d",
			r.path, ErrInvalid, write, read, r.mask)
	}
	if r.mode == Observe {
		return r.distance(read, write), r.distance(r.next, write), nil
	}
	if read != r.committed {
		if read == 0 {
			return 0, 0, r.restarted()
		}
		return 0, 0, r.foreign(read)
	}
	fill = r.distance(read, write)
	pending = fill - r.Uncommitted()
	if pending < 0 {
		// The agent's position went back behind what was read.
		return 0, 0, r.restarted()
	}
	return fill, pending, nil
}

// settle gives an agent that is rewriting its header the time for it, which is
// a few stores, and returns readPos as it stands then.
func (r *Reader) settle() (read uint64) {
	const looks = 64 // some hundred nanoseconds
	for range looks {
		read = atomic.LoadUint64(&r.hdr.readPos)
	}
	return read
}

// sameRing says whether the header still describes what was checked when the
// ring was opened.
func (r *Reader) sameRing() bool {
	return atomic.LoadInt32(&r.hdr.version) == r.layout.Version() &&
		atomic.LoadUint64(&r.hdr.capacity) == r.mask+1
}

func (r *Reader) restarted() error {
	return fmt.Errorf("ring %s: %w", r.path, ErrRestarted)
}

// foreign follows another consumer: the agent may overwrite what lies behind
// its position.
func (r *Reader) foreign(read uint64) error {
	from := r.committed
	r.next, r.committed = read, read
	return fmt.Errorf("ring %s: %w", r.path, &ForeignReadError{From: from, To: read})
}

// hand passes n events from slots on to fn, in one batch or, where the ring
// wraps, in two.
func (r *Reader) hand(slots []byte, n int, fn func(Batch)) {
	first := min(n, r.Capacity()-int(r.next)) //nolint:gosec // next is at most mask
	r.handRun(slots, first, fn)
	if n > first {
		r.handRun(slots, n-first, fn)
	}
}

func (r *Reader) handRun(slots []byte, n int, fn func(Batch)) {
	size := r.layout.EventSize()
	at := int(r.next) * size //nolint:gosec // next is at most mask
	fn(Batch{layout: r.layout, slots: slots[at : at+n*size]})
	r.next = (r.next + uint64(n)) & r.mask //nolint:gosec // n is not negative
}

// handCopy is hand for an observer. Nothing keeps the agent from overwriting a
// slot that its consumer has given back, so that slots are copied, and what
// the agent has come round to meanwhile is skipped.
func (r *Reader) handCopy(n int, fn func(Batch)) error {
	if r.copy == nil {
		r.copy = make([]byte, len(r.slots))
	}
	size := r.layout.EventSize()
	at := int(r.next) * size //nolint:gosec // next is at most mask
	end := at + n*size
	copied := copy(r.copy[at:min(end, len(r.copy))], r.slots[at:])
	copy(r.copy[:n*size-copied], r.slots)
	if !r.sameRing() {
		return r.restarted()
	}
	write := atomic.LoadUint64(&r.hdr.writePos) & r.mask
	if r.distance(r.next, write) < n {
		r.next = write
		return fmt.Errorf("ring %s: %w", r.path, ErrLapped)
	}
	r.hand(r.copy, n, fn)
	return nil
}

// Commit gives the events that were read back to the agent as free slots. For
// an observer it does nothing.
//
// The error is [ErrRestarted] or a [ForeignReadError] where the ring isn't as
// this reader left it; nothing is stored then.
func (r *Reader) Commit() (err error) {
	switch {
	case r.mem == nil:
		return fmt.Errorf("commit ring %s: %w", r.path, ErrClosed)
	case r.mode == Observe || r.next == r.committed:
		return nil
	}
	defer r.catch(debug.SetPanicOnFault(true), &err)
	if _, _, err := r.look(); err != nil {
		return err
	}
	// Release: the slots aren't looked at again. Pairs with the agent's
	// acquire load before it writes a slot. The swap fails where an agent has
	// started anew since, or somebody else reads.
	if !atomic.CompareAndSwapUint64(&r.hdr.readPos, r.committed, r.next) {
		_, _, err := r.look()
		return err
	}
	if r.committed == 0 && !r.settled() {
		return r.restarted()
	}
	r.committed = r.next
	return nil
}

// settled looks again after a swap from 0, the one position that an agent
// which starts anew stores itself, so that the swap can't tell it. Such an
// agent has nothing to write for its first run interval: its writePos is 0.
// The swap is undone then, or its ring would seem full of old events.
func (r *Reader) settled() bool {
	if r.sameRing() && atomic.LoadUint64(&r.hdr.writePos) != 0 {
		return true
	}
	r.settle()
	if r.sameRing() && atomic.LoadUint64(&r.hdr.writePos) != 0 {
		return true
	}
	return !atomic.CompareAndSwapUint64(&r.hdr.readPos, r.next, 0)
}

// ReadInto copies pending events to dst and returns their number. It commits
// nothing. The errors are those of [Reader.Read].
func (r *Reader) ReadInto(dst []Event) (n int, err error) {
	if len(dst) == 0 {
		return 0, nil
	}
	_, err = r.Read(len(dst), func(b Batch) {
		for i := range b.Len() {
			dst[n] = b.Event(i)
			n++
		}
	})
	return n, err
}

// Truncated says whether the file has become smaller than its ring since it
// was opened. A read finds that out by itself, but only when it comes to the
// part that is gone.
func (r *Reader) Truncated() bool {
	if r.mem == nil {
		return false
	}
	var st unix.Stat_t
	return unix.Fstat(int(r.file.Fd()), &st) == nil && st.Size < int64(len(r.mem))
}

// Close gives up the ring. It commits nothing. It is safe to call twice.
func (r *Reader) Close() error {
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	r.mem, r.hdr, r.slots, r.copy = nil, nil, nil, nil
	if err := errors.Join(unmap(mem), r.file.Close()); err != nil {
		return fmt.Errorf("close ring %s: %w", r.path, err)
	}
	return nil
}
