// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// OpenReader opens the ring at path. The Reader owns the file until Close.
// OpenReader doesn't access mapped memory. It opens only regular files and follows no link
// as the last element of the path.
//
// The error wraps [ErrNotReady] if opening may succeed later, [ErrNotRing],
// [ErrNotRegular], [ErrInvalid], [ErrUnknownVersion], [ErrLocked], [ErrFileSystem],
// [fs.ErrNotExist] or [fs.ErrPermission].
func OpenReader(path string, mode Mode) (*Reader, error) {
	return OpenReaderWith(path, mode, func(flag int) (*os.File, error) { return files.Open(path, flag) })
}

// OpenReaderWith is like [OpenReader], but calls open to open the file, for example below
// an [os.Root]. The path appears only in errors. The flag is [os.O_RDONLY]; for a
// consumer, a second call has [os.O_RDWR]. open must refuse files that aren't regular.
func OpenReaderWith(path string, mode Mode, open func(flag int) (*os.File, error)) (*Reader, error) {
	r, err := openReader(path, mode, open)
	if err != nil {
		return nil, fmt.Errorf("open ring %s: %w", path, err)
	}
	return r, nil
}

func openReader(path string, mode Mode, open func(flag int) (*os.File, error)) (_ *Reader, err error) {
	f, err := openRing(mode, open)
	if err != nil {
		return nil, err
	}
	closer := f.Close
	defer func() {
		if err != nil {
			err = errors.Join(err, closer())
		}
	}()
	inMemory, err := files.CheckLocal(f, mode == Consume)
	if err != nil {
		return nil, err
	}
	// Read the header again under the lock: until now, another consumer of this
	// project may have moved readPos.
	head, h, state, err := identifyFile(f)
	if err != nil {
		return nil, err
	}
	mem, m, err := mapFile(f, state.Size, mode == Consume, inMemory)
	if err != nil {
		return nil, err
	}
	closer = m.Close
	r, err := newReader(mem, head, state, m, mode)
	if err != nil {
		return nil, err
	}
	if err := r.checkWritten(r.next, r.distance(r.next, h.WritePos)); err != nil {
		return nil, err
	}
	r.path = path
	return r, nil
}

// openRing opens the file if it is a ring, and locks it for a consumer. Other files
// are neither opened for writing nor locked: in a shared directory, they may belong
// to someone else.
func openRing(mode Mode, open func(flag int) (*os.File, error)) (*os.File, error) {
	f, err := open(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if mode == Observe {
		return f, nil
	}
	if _, _, _, err := identifyFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// By now, the name may refer to another file.
	if f, err = open(os.O_RDWR); err != nil {
		return nil, err
	}
	if err := files.Lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// identifyFile reads the header of a file and checks that it is a ring. It uses read(2),
// so that a file that is not a ring is never mapped and no mapped page is touched, which
// could block.
func identifyFile(f *os.File) (head []byte, h Header, state FileState, err error) {
	if state, err = statFile(f); err != nil {
		return nil, h, state, err
	}
	switch {
	case state.Size == 0:
		err = unfinished("the file is empty")
	case state.Size < HeaderSize:
		err = fmt.Errorf("%w: the file has %d bytes, less than a header", ErrNotRing, state.Size)
	default:
		head, err = readAt(f, 0, HeaderSize)
	}
	if err == nil {
		h, _, err = identify(head, state.Size)
	}
	return head, h, state, err
}

func readAt(f *os.File, at, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := f.ReadAt(b, at)
	switch {
	case errors.Is(err, io.EOF):
		return nil, ErrShrunk
	case err != nil:
		return nil, fmt.Errorf("read %d bytes at %d: %w", n, at, err)
	}
	return b, nil
}

// Peek returns the header of the file at path, valid or not, to help diagnose a
// ring. The error is the one that [OpenReader] would return. Peek returns the
// header together with the error, or a zero header if the file has none.
func Peek(path string) (Header, error) {
	f, err := files.Open(path, os.O_RDONLY)
	if err != nil {
		return Header{}, fmt.Errorf("ring %s: %w", path, err)
	}
	defer f.Close()
	h, err := PeekFile(f)
	if err != nil {
		err = fmt.Errorf("ring %s: %w", path, err)
	}
	return h, err
}

// PeekFile is [Peek] for an open file.
func PeekFile(f *os.File) (Header, error) {
	_, h, _, err := identifyFile(f)
	return h, err
}

// Create creates a ring at path as a starting agent does. The capacity must be a
// power of two. An existing ring of any layout and size is reused and its events
// are discarded. The file mode is 0644, minus the umask.
//
// The error wraps [ErrNotRing] or [ErrNotRegular] for another file, and ENOSPC
// on a full file system.
func Create(path string, layout Layout, capacity int) (*Writer, error) {
	w, err := createRing(path, layout, capacity)
	if err != nil {
		return nil, fmt.Errorf("create ring %s: %w", path, err)
	}
	w.path = path
	return w, nil
}

func createRing(path string, layout Layout, capacity int) (_ *Writer, err error) {
	if err := checkRing(layout, capacity); err != nil {
		return nil, err
	}
	f, err := files.Create(path)
	if err != nil {
		return nil, err
	}
	closer := f.Close
	defer func() {
		if err != nil {
			err = errors.Join(err, closer())
		}
	}()
	// Unlike an agent, overwrite no file that is not a ring.
	if _, _, state, err := identifyFile(f); state.Size > 0 && errors.Is(err, ErrNotRing) {
		return nil, err
	}
	size := layout.FileSize(uint64(capacity))
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	mem, m, err := mapFile(f, size, true, false)
	if err != nil {
		return nil, err
	}
	closer = m.Close
	// As NIXL does (file_closer in src/utils/common/cyclic_buffer.tpp, v1.1.0 to v1.4.0).
	if err := m.closeFile(); err != nil {
		return nil, err
	}
	return NewWriter(mem, m, layout, capacity)
}
