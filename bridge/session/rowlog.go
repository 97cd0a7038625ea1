// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A write(2) takes about a microsecond, more than the rest of recording a packet
// without metrics. So a row is usually written immediately, but rows of a burst are
// written together.
const (
	// writeGap is the minimum time after a write for the next row to be written
	// immediately. It limits writing to a twentieth of a core.
	writeGap = 20 * time.Microsecond
	// writeDelay is the maximum time that a row stays in memory.
	writeDelay = time.Millisecond
	// writeSize is the maximum number of bytes that stay in memory.
	writeSize = 32 << 10
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

// rowLog writes rows to a file, each completely or not at all. It is not safe for
// concurrent use.
type rowLog struct {
	file file
	path string
	size int64 // the end of the last complete row
	torn bool  // an incomplete row may follow

	waiting []byte // rows not yet written
	ends    []int  // the end of each waiting row
	wrote   time.Time

	failing bool  // the last write failed
	lost    int64 // number of rows that couldn't be written
	err     error // the error of the first lost row
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

// add accepts the row that the caller has appended to waiting, and writes all
// waiting rows unless this is a burst. While writes fail, it writes each row
// immediately, so that the call that added the row can return the error.
func (l *rowLog) add(now time.Time) error {
	l.ends = append(l.ends, len(l.waiting))
	gap := now.Sub(l.wrote)
	if burst := gap >= 0 && gap < writeGap; burst && !l.failing && len(l.waiting) < writeSize {
		return nil
	}
	return l.flush(now)
}

// flush writes the waiting rows. After an error, the file contains the rows that
// could be written and ends with a complete row.
func (l *rowLog) flush(now time.Time) error {
	if len(l.ends) == 0 {
		return nil
	}
	l.wrote = now
	err := l.write(l.waiting)
	if err != nil {
		err = l.writeEach()
	}
	l.failing = err != nil
	l.waiting, l.ends = l.waiting[:0], l.ends[:0]
	if cap(l.waiting) > 2*writeSize {
		l.waiting = nil // an error's text can be very long
	}
	return err
}

// writeEach writes the waiting rows one by one: on a full disk, some may still fit.
func (l *rowLog) writeEach() error {
	var first error
	start := 0
	for _, end := range l.ends {
		if err := l.write(l.waiting[start:end]); err != nil {
			l.lost++
			if first == nil {
				first = err
			}
		}
		start = end
	}
	if l.err == nil {
		l.err = first
	}
	return first
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
	// On a full disk, a part of the rows may have been written. It must be removed
	// before the next write.
	if n > 0 {
		l.torn = l.file.Truncate(l.size) != nil
	}
	return err
}

// close writes the waiting rows and closes the file. It returns an error if
// rows are missing.
func (l *rowLog) close(now time.Time) error {
	_ = l.flush(now) // counts rows that it can't write as lost
	var lost error
	if l.lost > 0 {
		lost = fmt.Errorf("%d rows are missing in %s, first error: %w", l.lost, l.path, l.err)
	}
	return errors.Join(lost, l.file.Close())
}
