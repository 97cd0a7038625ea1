package session

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// file is what a row log needs of *os.File.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
}

// createFile makes a file that isn't there yet. Appending, so that writing
// goes on at the end after a torn row was cut off.
func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// rowLog writes rows to a file, each with one write and each whole or not at
// all. It is not safe for concurrent use.
type rowLog struct {
	file file
	path string
	size int64 // where the last whole row ends
	torn bool  // there may be a part of a row after that
	lost int64 // rows that could not be written
	err  error // why the first of them couldn't
}

// openRowLog makes the file and writes its first line.
func openRowLog(path string, create func(string) (file, error)) (*rowLog, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	l := &rowLog{file: f, path: path}
	if err := l.write(header()); err != nil {
		// A file without its header would only be in the way of the next try.
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return l, nil
}

// add writes one row. On an error the file ends where it did before.
func (l *rowLog) add(row []byte) error {
	err := l.write(row)
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
	return err
}

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
	// A full disk takes the part of a row that still fits. What the next
	// write would append to that is no row, so it goes, now or later.
	if n > 0 {
		l.torn = l.file.Truncate(l.size) != nil
	}
	return err
}

// close closes the file and tells whether all rows are in it.
func (l *rowLog) close() error {
	var lost error
	if l.lost > 0 {
		lost = fmt.Errorf("%d rows are missing in %s, the first because: %w", l.lost, l.path, l.err)
	}
	return errors.Join(lost, l.file.Close())
}
