// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenReader opens the ring at path. The Reader owns the file until Close.
// OpenReader doesn't access mapped memory.
//
// The error wraps [ErrNotReady] if opening may succeed later, [ErrNotRing],
// [ErrNotRegular] or [ErrInvalid], or is an [UnknownVersionError],
// [PermissionError], [OwnerError], [LockedError] or [FileSystemError].
func OpenReader(path string, mode Mode, opts ...Option) (*Reader, error) {
	r, err := openReader(path, mode, newOptions(opts))
	if err != nil {
		return nil, fmt.Errorf("open ring %s: %w", path, err)
	}
	return r, nil
}

func openReader(path string, mode Mode, o options) (_ *Reader, err error) {
	f, err := openRing(path, mode, o)
	if err != nil {
		return nil, err
	}
	closer := f.Close
	defer func() {
		if err != nil {
			err = errors.Join(err, closer())
		}
	}()
	onDisk, err := checkLocal(f)
	if err != nil {
		return nil, err
	}
	// Read the header again under the lock: until now, another consumer of this
	// project may have moved readPos.
	head, _, st, err := identifyFile(f)
	if err != nil {
		return nil, err
	}
	prot := unix.PROT_READ
	if mode == Consume {
		prot |= unix.PROT_WRITE
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := mapFile(f, st.Size, prot)
	if err != nil {
		return nil, err
	}
	closer = m.Close
	r, err := newReader(m.mem, head, stateOf(&st), m, mode)
	if err != nil {
		return nil, err
	}
	if err := r.checkWritten(r.next, r.distance(r.next, r.lastWrite)); err != nil {
		return nil, err
	}
	size := int64(len(r.tail))
	if r.tail, err = readAt(f, st.Size-size, size); err != nil {
		return nil, err
	}
	r.info = fileInfo{path: path, id: FileID{Dev: st.Dev, Ino: st.Ino}, owner: st.Uid, info: info, onDisk: onDisk}
	return r, nil
}

// SameFile reports whether info, a result of os.Lstat, describes the file that
// this reader has open.
func (r *Reader) SameFile(info os.FileInfo) bool { return os.SameFile(r.info.info, info) }

// Peek returns the header of the file at path, valid or not, to help diagnose a
// ring. The error is the one that [OpenReader] would return. Peek returns the
// header together with the error, or a zero header if the file has none.
func Peek(path string, opts ...Option) (Header, error) {
	f, _, err := openChecked(path, Observe, newOptions(opts))
	if err != nil {
		return Header{}, fmt.Errorf("ring %s: %w", path, err)
	}
	defer f.Close()
	_, h, _, err := identifyFile(f)
	if err != nil {
		err = fmt.Errorf("ring %s: %w", path, err)
	}
	return h, err
}

// Unattended reports whether no process has the ring at path open or mapped for
// writing, so it has neither an agent nor a consumer. For a ring that this process
// has open, use [Reader.Attended].
//
// It acquires a read lease, which the kernel grants only in this case, and
// releases it immediately. The errors are those of Reader.Attended,
// [fs.ErrNotExist] and the errors of [OpenReader] about the kind of file.
func Unattended(path string, opts ...Option) (bool, error) {
	f, _, err := openChecked(path, Observe, newOptions(opts))
	if err != nil {
		return false, fmt.Errorf("ring %s: %w", path, err)
	}
	defer f.Close()
	attended, err := leaseRefused(f, unix.F_RDLCK)
	if err != nil {
		return false, fmt.Errorf("ring %s: %w", path, err)
	}
	return !attended, nil
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
	f, err := openForWriter(path)
	if err != nil {
		return nil, err
	}
	closer := f.Close
	defer func() {
		if err != nil {
			err = errors.Join(err, closer())
		}
	}()
	size := layout.FileSize(uint64(capacity))
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	m, err := mapFile(f, size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	closer = m.Close
	return NewWriter(m.mem, m, layout, capacity)
}

// openForWriter opens or creates the file. Unlike an agent, it never overwrites a
// file that is not a ring.
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
		if _, _, _, err = identifyFile(f); !errors.Is(err, ErrNotRing) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
