// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// file is the part of *os.File that a row log uses.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
}

// createFile creates a file that must not exist. It is opened for appending, so that
// writes continue at the end after an incomplete row was truncated.
func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	lock(f)
	return f, nil
}

// maxKept is the maximum capacity of the buffer that is kept for the next row.
const maxKept = 64 << 10

// rowLog writes rows to a file, each completely or not at all. It is not safe for
// concurrent use.
type rowLog struct {
	file file
	path string
	size int64 // the end of the last complete row
	torn bool  // an incomplete row may follow

	row  []byte // reused
	lost int64  // number of rows that couldn't be written
	err  error  // the error of the first lost row
}

// openRowLog creates the file and writes its header.
func openRowLog(path string, create func(string) (file, error)) (*rowLog, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	l := &rowLog{file: f, path: path}
	if err := l.write(header()); err != nil {
		// A file without a header is useless and would prevent the next attempt.
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return l, nil
}

// add writes one row.
func (l *rowLog) add(row []byte) error {
	l.row = row[:0]
	if cap(row) > maxKept {
		l.row = nil // an error's text can be very long
	}
	err := l.write(row)
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
	return err
}

// write appends all of b to the file, or nothing.
func (l *rowLog) write(b []byte) error {
	if l.torn {
		if err := l.file.Truncate(l.size); err != nil {
			return err
		}
		l.torn = false
	}
	n, err := l.file.Write(b)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	// On a full disk, a part of the row may have been written. It must be removed
	// before the next write.
	if n > 0 {
		l.torn = l.file.Truncate(l.size) != nil
	}
	return err
}

// close closes the file. It returns an error if rows are missing.
func (l *rowLog) close() error {
	var lost error
	if l.lost > 0 {
		lost = fmt.Errorf("%d rows are missing in %s, first error: %w", l.lost, l.path, l.err)
	}
	return errors.Join(lost, l.file.Close())
}
