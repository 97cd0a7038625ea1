//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reader reads one ring. It isn't safe for concurrent use, but for [Round.Idle].
type Reader struct {
	// What a look at an idle ring needs is together: it is most of what there
	// is to do where there are many rings, and each line of the cache counts.
	at        atomic.Uint64 // next and committed, for a Round; see moved
	hdr       *header
	mem       []byte // the whole file; nil once closed
	next      uint64 // up to where events were handed out
	committed uint64 // what readPos holds, as far as this reader knows
	mask      uint64 // checked when the ring was opened; the header's is not looked at again
	mode      Mode
	layout    Layout

	path  string
	id    FileID
	info  fs.FileInfo
	owner uint32
	file  *os.File
	slots []byte
	end   *uint64  // the last word of the file; nil where it can't tell that the file has shrunk
	copy  []uint64 // where an observer copies slots to; the agent may overwrite them

	changed unix.Timespec // of the file, when this reader last asked

	// While committed is 0: a checksum of what was read, up to a position; see
	// sameRun. Both are 0 where nothing is known.
	seen   uint32
	seenTo uint64
}

// OpenReader opens the ring at path.
//
// The error wraps what is wrong: [ErrNotReady] asks to try again later;
// [ErrNotRing], [ErrNotRegular], [ErrInvalid] and [UnknownVersionError] are
// what the file is; [PermissionError], [OwnerError] and [LockedError] say who
// stands in the way.
func OpenReader(path string, mode Mode, opts ...Option) (*Reader, error) {
	r := &Reader{path: path, mode: mode}
	if err := r.open(newOptions(opts)); err != nil {
		return nil, fmt.Errorf("open ring %s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) open(o options) (err error) {
	f, err := openRing(r.path, r.mode, o)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	// The header is read once more, now that the ring is locked: another
	// consumer of this project may have moved readPos and gone only just now.
	h, l, st, err := identify(f)
	if err != nil {
		return err
	}
	prot := unix.PROT_READ
	if r.mode == Consume {
		prot |= unix.PROT_WRITE
	}
	if r.info, err = f.Stat(); err != nil {
		return err
	}
	mem, err := mapFile(f, st.Size, prot)
	if err != nil {
		return err
	}
	r.file, r.mem, r.layout, r.mask = f, mem, l, h.Mask
	r.id, r.owner, r.changed = FileID{Dev: st.Dev, Ino: st.Ino}, st.Uid, st.Ctim
	r.hdr = (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	r.slots = mem[headerSize:]
	if pages(smaller(st.Size)) < pages(st.Size) {
		r.end = (*uint64)(unsafe.Pointer(&mem[len(mem)-8]))
	}
	r.next, r.committed = h.ReadPos, h.ReadPos
	r.moved()
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
func (r *Reader) Capacity() int { return int(r.mask) + 1 }

// Uncommitted is the number of events that were read and still stand in the
// ring.
func (r *Reader) Uncommitted() int { return r.distance(r.committed, r.next) }

// Position is the slot after the last event that was read.
func (r *Reader) Position() uint64 { return r.next }

// Both positions of a reader fit into one word, committed above next.
const (
	nextBits = 32 // MaxCapacity needs fewer
	nextMask = 1<<nextBits - 1
	nowhere  = math.MaxUint64 // of a reader that is closed, or an observer
)

// moved tells a [Round], which may be looking, where the reader stands now.
func (r *Reader) moved() {
	if r.mode == Observe {
		r.at.Store(nowhere)
		return
	}
	r.at.Store(r.committed<<nextBits | r.next)
}

func (r *Reader) distance(from, to uint64) int { return int((to - from) & r.mask) }

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
	r.at.Store(nowhere)
	r.mem, r.hdr, r.slots, r.end, r.copy = nil, nil, nil, nil, nil
	if err := errors.Join(unmap(mem), r.file.Close()); err != nil {
		return fmt.Errorf("close ring %s: %w", r.path, err)
	}
	return nil
}
