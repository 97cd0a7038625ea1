// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Store is an open store.
type Store struct {
	Header

	// Updated is the time of the last update when the store was last read, as CLOCK_MONOTONIC.
	Updated time.Duration

	file  *os.File
	shape *tally.Shape
}

// Open reads the header of the store in a file with a name, and takes over the file. The totals
// have the histograms of the store only with histograms. Open closes the file if there is an error,
// which wraps [ErrInvalid] or [ErrVersion].
func Open(file *os.File, name string, histograms bool) (*Store, error) {
	s := &Store{file: file}
	if err := s.open(name, histograms); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func (s *Store) open(name string, histograms bool) error {
	parsed, ok := parseName(name)
	if !ok {
		return fmt.Errorf("%w: file name isn't nixl.PID.START.INSTANCE.mmap", ErrInvalid)
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	b := make([]byte, headerSize)
	if err := s.readAt(b[:min(info.Size(), headerSize)]); err != nil {
		return err
	}
	if s.Header, err = parseHeader(b, info.Size(), parsed); err != nil {
		return err
	}
	if s.shape, err = tally.ImportShape(s.Bounds, histograms); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.Updated = updated(b)
	return nil
}

// readAt reads the start of the store.
func (s *Store) readAt(b []byte) error {
	_, err := s.file.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		return errShrunk
	}
	return err
}

func updated(b []byte) time.Duration { return time.Duration(word(b[atUpdated:], 0)) }

// Running reports whether the process of the store is running: it has a lock until it exits. Only what
// is read afterwards includes the final values of a process that has exited.
func (s *Store) Running() (bool, error) { return files.IsLocked(s.file) }

// Read returns the totals in the store. The memory of a process that has exited is released.
func (s *Store) Read(exited bool) (*tally.Totals, error) {
	b := make([]byte, usedSize(s.slots))
	if err := s.readAt(b); err != nil {
		return nil, err
	}
	s.Updated = updated(b)
	return s.shape.Import(s.decode(b), exited), nil
}

// Close closes the store.
func (s *Store) Close() error { return s.file.Close() }
