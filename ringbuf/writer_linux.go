//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Writer is the agent's side of a ring. It isn't safe for concurrent use, and
// a ring takes one writer.
type Writer struct {
	path   string
	layout Layout
	mask   uint64

	file  *os.File
	mem   []byte // nil once closed
	hdr   *header
	slots Batch // all of them
}

// Create makes a ring of a given number of slots, which must be a power of
// two, at path, as an agent that starts does: an existing ring is taken over,
// whatever its layout and size, and what stood in it is gone. Mode 0644 less
// the umask, as an agent's. A file that isn't a ring is refused.
func Create(path string, layout Layout, capacity int) (*Writer, error) {
	w := &Writer{path: path, layout: layout}
	if err := w.create(capacity); err != nil {
		return nil, fmt.Errorf("create ring %s: %w", path, err)
	}
	return w, nil
}

func (w *Writer) create(capacity int) (err error) {
	switch {
	case !w.layout.known():
		return fmt.Errorf("unknown layout %d", w.layout)
	case capacity < 2 || capacity > MaxCapacity || bits.OnesCount(uint(capacity)) != 1:
		return fmt.Errorf("capacity %d is not a power of two from 2 to %d", capacity, MaxCapacity)
	}
	f, err := openForWriter(w.path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	size := w.layout.fileSize(uint64(capacity))
	if err := f.Truncate(size); err != nil {
		return err
	}
	mem, err := mapFile(f, size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}
	w.file, w.mem, w.mask = f, mem, uint64(capacity)-1
	w.hdr = (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	w.slots = Batch{layout: w.layout, slots: mem[headerSize:]}
	w.start()
	return nil
}

// openForWriter opens or makes the file. An agent would write over whatever
// file stands there.
func openForWriter(path string) (*os.File, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil {
		err = checkRegular(&st)
	}
	if err == nil && st.Size > 0 {
		var h Header
		if h, err = readHeader(f, st.Size); err == nil {
			_, err = h.layout(st.Size)
		}
		if !errors.Is(err, ErrNotRing) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// start writes the header, in the order of NIXL's createCyclicBuffer and the
// constructor of bufferHeader (src/utils/common/cyclic_buffer.tpp, the same in
// 0.6.0, v1.1.0 and v1.4.0). A reader that looks in between sees version 0 and
// waits; expectedVersion comes last and is read by nobody.
func (w *Writer) start() {
	h := w.hdr
	atomic.StoreUint64(&h.writePos, 0)
	atomic.StoreUint64(&h.readPos, 0)
	atomic.StoreInt32(&h.version, 0)
	atomic.StoreUint64(&h.capacity, w.mask+1)
	atomic.StoreUint64(&h.mask, w.mask)
	atomic.StoreInt32(&h.version, w.layout.Version())
	atomic.StoreInt32(&h.expectedVersion, w.layout.Version())
}

// Path is the path of the ring.
func (w *Writer) Path() string { return w.path }

// Layout is the ring's layout.
func (w *Writer) Layout() Layout { return w.layout }

// Capacity is the number of slots. The ring holds at most one event less.
func (w *Writer) Capacity() int { return int(w.mask) + 1 }

// Push puts one event into the ring. The error is [ErrFull], [ErrNoType],
// [ErrShrunk], [ErrClosed], or ENOSPC where the file system is full: a ring
// takes its room as it is filled.
func (w *Writer) Push(e Event) error {
	n, err := w.PushBatch([]Event{e})
	if n == 0 && err == nil {
		return ErrFull
	}
	return err
}

// PushBatch puts events into the ring, in order, and makes them visible one by
// one, as an agent that flushes its staging queue does. It returns how many
// fitted; the rest is not tried. An event that the layout can't carry ends the
// batch with [ErrNoType].
func (w *Writer) PushBatch(events []Event) (n int, err error) {
	if w.mem == nil {
		return 0, fmt.Errorf("write ring %s: %w", w.path, ErrClosed)
	}
	defer w.catch(debug.SetPanicOnFault(true), &err)
	// This writer is the only one that stores writePos.
	write := atomic.LoadUint64(&w.hdr.writePos) & w.mask
	for ; n < len(events); n++ {
		next := (write + 1) & w.mask
		// Acquire: pairs with the reader's release store after its last look at
		// the slot.
		if next == atomic.LoadUint64(&w.hdr.readPos) {
			return n, nil
		}
		if err := w.slots.put(int(write), &events[n]); err != nil {
			return n, fmt.Errorf("write ring %s (%v): %w", w.path, w.layout, err)
		}
		// Release: the slot is written. Pairs with the reader's acquire load.
		atomic.StoreUint64(&w.hdr.writePos, next)
		write = next
	}
	return n, nil
}

func (w *Writer) catch(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		if !faultIn(w.mem, v) {
			panic(v)
		}
		*err = fmt.Errorf("write ring %s: %w", w.path, w.gone())
	}
}

// gone is why a page of the ring isn't there: the file has shrunk, or, as it
// is sparse, its file system has no room for the page.
func (w *Writer) gone() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(w.file.Fd()), &st); err == nil && st.Size >= int64(len(w.mem)) {
		return unix.ENOSPC
	}
	return ErrShrunk
}

// Len is the number of events that stand in the ring.
func (w *Writer) Len() (n int, err error) {
	if w.mem == nil {
		return 0, fmt.Errorf("ring %s: %w", w.path, ErrClosed)
	}
	defer w.catch(debug.SetPanicOnFault(true), &err)
	read, write := atomic.LoadUint64(&w.hdr.readPos), atomic.LoadUint64(&w.hdr.writePos)
	return int((write - read) & w.mask), nil
}

// Close gives up the ring and leaves its file, as an agent does. It is safe to
// call twice.
func (w *Writer) Close() error {
	if w.mem == nil {
		return nil
	}
	mem := w.mem
	w.mem, w.hdr, w.slots = nil, nil, Batch{}
	if err := errors.Join(unmap(mem), w.file.Close()); err != nil {
		return fmt.Errorf("close ring %s: %w", w.path, err)
	}
	return nil
}
