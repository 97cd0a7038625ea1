// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// openRing opens the file if it is a ring, and locks it for a consumer. Other files
// are neither opened for writing nor locked: in a shared directory, they may belong
// to someone else.
func openRing(mode Mode, open func(flag int) (*os.File, error)) (*os.File, error) {
	f, err := open(os.O_RDONLY)
	if err != nil {
		return nil, err
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
	if f, err = open(os.O_RDWR); err != nil {
		return nil, err
	}
	if err := files.Lock(f); err != nil {
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
