// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Mode determines whether a reader consumes events.
type Mode uint8

const (
	// Consume removes events from the ring, so the agent can reuse their slots.
	// It needs write permission. A ring can have one consumer at a time.
	Consume Mode = iota
	// Observe opens the ring read-only and leaves it unchanged.
	Observe
)

// String returns "consume" or "observe".
func (m Mode) String() string {
	if m == Observe {
		return "observe"
	}
	return "consume"
}

// UnmarshalText implements [encoding.TextUnmarshaler]: it is the reverse of [Mode.String].
func (m *Mode) UnmarshalText(text []byte) error {
	for _, mode := range []Mode{Consume, Observe} {
		if mode.String() == string(text) {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("unknown mode %q: use consume or observe", text)
}

// MarshalText implements [encoding.TextMarshaler] with [Mode.String].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Reader reads one ring. It is not safe for concurrent use, except that Path, ID, Layout,
// Capacity and Attended may be called from other goroutines.
type Reader struct {
	// Most calls find an idle ring, and nothing of it in the processor's caches. So what Idle needs is in two cache lines.
	next      uint64 // the slot after the last event that was read
	committed uint64 // the value of readPos, as far as this reader knows
	kept      bool   // the event in the last slot counts as committed; see CommitTo
	mode      Mode
	idle      bool // result of runIdle
	runIdle   func()
	ring

	extent extent    // see holes.go
	since  time.Time // when this reader first saw the ambiguous header; see restart.go
	tail   []byte    // see observe.go

	// See checksum.go.
	sum   uint32
	sumTo uint64

	dev, ino uint64

	// Arguments and results of the functions that run under Guard. The functions are
	// created once, so that a pass allocates nothing.
	runRead, runCopy, runCommit func()
	pass                        pass
	position                    uint64
}

// pass is the state of [Reader.Read].
type pass struct {
	limit  int
	fill   int
	left   int // events to copy
	ahead  int // events up to the write position when an observer last saw it
	buffer *buffer
	batch  Batch // the copied events
}

// NewReader returns a Reader for a ring in memory: mem is the whole file and
// must be aligned to 8 bytes. Most callers should use [OpenReader].
//
// The error wraps [ErrNotReady], [ErrNotRing], [ErrInvalid] or [ErrUnknownVersion], or
// comes from b.
func NewReader(mem []byte, b Backing, mode Mode) (*Reader, error) {
	if len(mem) < HeaderSize || !aligned(mem) {
		return nil, fmt.Errorf("%w: %d bytes of memory are less than a header, or not aligned to 8 bytes", ErrNotRing, len(mem))
	}
	state, err := b.Stat()
	if err != nil {
		return nil, err
	}
	var head [HeaderSize / 8]uint64
	if err := b.Guard(func() { copyWords(head[:], mem[:HeaderSize]) }); err != nil {
		return nil, err
	}
	return newReader(mem, bytesOf(head[:]), state, b, mode)
}

// newReader creates a reader from a copy of the header. It doesn't access the memory of a file.
func newReader(mem, head []byte, state FileState, b Backing, mode Mode) (*Reader, error) {
	h, l, err := identify(head, int64(len(mem)))
	if err != nil {
		return nil, err
	}
	r := &Reader{
		ring: ringIn(mem, b, l, h.Mask), next: h.ReadPos, committed: h.ReadPos, mode: mode,
		dev: state.Dev, ino: state.Ino,
	}
	if mode == Observe && h.WritePos >= h.ReadPos {
		r.rememberTail()
	}
	r.runIdle, r.runRead, r.runCopy, r.runCommit = r.guardedIdle, r.guardedRead, r.guardedCopy, r.guardedCommit
	return r, nil
}

// ID identifies the ring's file by its device and inode, even if another file later gets
// the same path. Both are 0 for memory.
func (r *Reader) ID() (dev, ino uint64) { return r.dev, r.ino }

// Uncommitted returns the number of events that were read and are still in the
// ring. For an observer it is 0.
func (r *Reader) Uncommitted() int {
	if r.mode == Observe {
		return 0
	}
	if r.kept {
		return r.unreturned() - 1
	}
	return r.unreturned()
}

// unreturned returns the number of slots that were read, but not returned to the agent.
func (r *Reader) unreturned() int { return r.distance(r.committed, r.next) }

// Position returns the slot after the last event that was read.
func (r *Reader) Position() uint64 { return r.next }

// Committed returns the slot after the last event that was committed.
func (r *Reader) Committed() uint64 { return r.committed }

// Idle reports whether [Reader.Read] would find no new events and no error,
// regardless of uncommitted events. It costs a fraction of a Read. If it returns
// false, call Read for the events or the error.
func (r *Reader) Idle() bool {
	return r.guard(r.runIdle) == nil && r.idle
}

func (r *Reader) guardedIdle() {
	// Same load order as in look. An observer has no position in the header.
	r.idle = atomic.LoadUint64(r.write) == r.next &&
		(r.mode == Observe || atomic.LoadUint64(r.read) == r.committed) && r.is(r.layout.Version(), r.mask+1)
}

// Read calls fn with copies of the pending events in batches, oldest first, up to limit
// events (0 means no limit). It returns how many events the header showed at the start,
// including events that were read but not committed. fn must not use the Reader.
//
// The error wraps [ErrRestarted], [ErrShrunk] or [ErrInvalid] if the caller must
// open the ring again, [ErrLapped] or [ErrForeignRead] if the reader skipped
// events that it couldn't read, or [os.ErrClosed]. Events already passed to fn are
// valid even if Read returns an error.
//
// If the agent overwrites events while an observer copies them, Read omits them and
// returns ErrLapped.
func (r *Reader) Read(limit int, fn func(Batch)) (fill int, err error) {
	b, _ := buffers.Get().(*buffer)
	r.pass = pass{limit: limit, buffer: b}
	err = r.guard(r.runRead)
	for err == nil && r.pass.batch.slots != nil {
		fn(r.pass.batch)
		r.pass.batch.slots = nil
		if r.pass.left > 0 {
			err = r.guard(r.runCopy)
		}
	}
	fill = r.pass.fill
	r.pass = pass{}
	buffers.Put(b)
	return fill, err
}

func (r *Reader) guardedRead() {
	s, err := r.look()
	if err == nil && s.pending > 0 {
		s, err = r.verify(s)
	}
	p := &r.pass
	p.fill, p.ahead, p.left = s.fill, s.pending, s.pending
	if p.limit > 0 {
		p.left = min(p.left, p.limit)
	}
	if err == nil {
		err = r.checkWritten(r.next, p.left)
	}
	if r.err = err; err == nil && p.left > 0 {
		r.guardedCopy()
	}
}

// guardedCopy copies the next events to the buffer, up to the end of the ring.
func (r *Reader) guardedCopy() {
	p, size := &r.pass, r.layout.EventSize()
	n := min(p.left, r.Capacity()-int(r.next), len(p.buffer)*8/size)
	from := r.slots[int(r.next)*size:][:n*size]
	slots := bytesOf(p.buffer[:])[:n*size]
	if r.mode == Consume {
		copy(slots, from)
	} else {
		copyWords(p.buffer[:], from)
		r.err = r.checkCopy(n)
	}
	if r.err == nil {
		r.err = r.written(slots)
	}
	if r.err == nil {
		p.batch, p.left = Batch{r.layout, slots}, p.left-n
		r.moveTo((r.next + uint64(n)) & r.mask)
		r.rememberRun()
	}
}

// moveTo sets next. All changes of next go through it.
func (r *Reader) moveTo(next uint64) {
	if r.mode == Observe && next < r.next {
		r.rememberTail()
	}
	r.next = next
}

// Attended reports whether another process, such as an agent or another consumer,
// has the ring's file open or mapped. For an observer, only processes that can
// write count. Another goroutine may call it while the owner reads.
//
// It acquires a lease on the file and releases it immediately. The error wraps
// EACCES if this process is neither root nor the file's owner, EINVAL if the file
// system doesn't support leases, and [errors.ErrUnsupported] on overlayfs, where the
// kernel can't tell, and for a ring in memory.
func (r *Reader) Attended() (bool, error) {
	f, ok := r.backing.(fileBacking)
	if !ok {
		return false, r.wrap(errors.ErrUnsupported)
	}
	attended, err := files.LeaseRefused(f.file(), r.mode == Consume)
	if err != nil {
		err = r.wrap(err)
	}
	return attended, err
}
