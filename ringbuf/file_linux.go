// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openRing opens the file at path if it is a ring, and locks it for a consumer.
// Other files are neither opened for writing nor locked: in a shared directory,
// they may belong to someone else.
func openRing(path string, mode Mode, o options) (*os.File, error) {
	f, st, err := openChecked(path, Observe, o)
	if err != nil {
		return nil, err
	}
	if err := o.check(st.Uid); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, _, _, err := identifyFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if mode == Observe {
		return f, nil
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// By now, the name may refer to another file.
	if f, st, err = openChecked(path, Consume, o); err != nil {
		return nil, err
	}
	if err := o.check(st.Uid); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if o.holder == nil {
		o.holder = lockHolder
	}
	if err := lock(f, st, o.holder); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// identifyFile reads the header of a file and checks that it is a ring.
func identifyFile(f *os.File) (head []byte, h Header, st unix.Stat_t, err error) {
	if err = unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, h, st, err
	}
	if head, err = readHead(f, st.Size); err != nil {
		return nil, h, st, err
	}
	h, _, err = identify(head, st.Size)
	return head, h, st, err
}

// openChecked opens a regular file, and nothing else. It checks the kind of file
// before opening, because opening a device can have side effects, and again
// afterwards, because the name may then refer to another file.
func openChecked(path string, mode Mode, o options) (*os.File, *unix.Stat_t, error) {
	var st unix.Stat_t
	loc := o.locate(path)
	if err := unix.Fstatat(loc.at, loc.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, nil, err
	}
	if err := checkRegular(&st); err != nil {
		return nil, nil, err
	}
	flags := unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	if mode == Consume {
		if st.Mode&0o222 == 0 { // root could open it nevertheless
			return nil, nil, &PermissionError{Owner: st.Uid, UID: uint32(os.Geteuid()), Mode: mode, Protected: true}
		}
		flags |= unix.O_RDWR
	}
	fd, err := openRetry(loc.at, loc.name, flags, 0)
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS):
		return nil, nil, &PermissionError{
			Owner: st.Uid, UID: uint32(os.Geteuid()), Mode: mode,
			ReadOnly: errors.Is(err, unix.EROFS),
		}
	case errors.Is(err, unix.ELOOP):
		return nil, nil, fmt.Errorf("%w: it is now a symbolic link", ErrNotRegular)
	case err != nil:
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if err := checkRegular(&st); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, &st, nil
}

func openRetry(at int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func checkRegular(st *unix.Stat_t) error {
	var kind string
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFLNK:
		kind = "symbolic link; links are not followed, configure the directory of its target instead"
	case unix.S_IFDIR:
		kind = "directory"
	case unix.S_IFIFO:
		kind = "FIFO"
	case unix.S_IFSOCK:
		kind = "socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "device"
	default:
		kind = "file of an unknown kind"
	}
	return fmt.Errorf("%w: it is a %s", ErrNotRegular, kind)
}

// readHead reads a header of the maximum size. It uses read(2), so that a file
// that is not a ring is never mapped and no mapped page is touched, which could
// block.
func readHead(f *os.File, size int64) ([]byte, error) {
	switch {
	case size == 0:
		return nil, &unfinishedError{"the file is empty"}
	case size < int64(compact.size):
		return nil, fmt.Errorf("%w: the file has %d bytes, less than a header", ErrNotRing, size)
	}
	return readAt(f, 0, min(size, maxHeaderSize))
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
