// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Store is an open store.
type Store struct {
	Header

	file *os.File
}

// Open reads the header of the store in a file with a name, and takes over the file. It closes
// the file if there is an error, which wraps [ErrInvalid] or [ErrVersion].
func Open(file *os.File, name string) (*Store, error) {
	h, err := readHeader(file, name)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Store{Header: h, file: file}, nil
}

func readHeader(file *os.File, name string) (Header, error) {
	parsed, ok := parseName(name)
	if !ok {
		return Header{}, fmt.Errorf("%w: file name isn't nixl.PID.START.INSTANCE.mmap", ErrInvalid)
	}
	info, err := file.Stat()
	if err != nil {
		return Header{}, err
	}
	var b [headerSize]byte
	if _, err := file.ReadAt(b[:min(info.Size(), headerSize)], 0); err != nil {
		return Header{}, ended(err)
	}
	return parseHeader(b[:], info.Size(), parsed)
}

// ended replaces the error of reading beyond the end of a file.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errShrunk
	}
	return err
}

// Running reports whether the process of the store is running. Only what is read
// afterwards includes the final values of a process that has exited. The error wraps
// [errors.ErrUnsupported] on a system without such locks.
func (s *Store) Running() (bool, error) { return isLocked(s.file) }

// Read returns the values in the store.
func (s *Store) Read() (*tally.Values, error) {
	b := make([]byte, usedSize(s.slots))
	if _, err := s.file.ReadAt(b, 0); err != nil {
		return nil, ended(err)
	}
	s.Updated = updated(b)
	return s.decode(b), nil
}

// Close closes the store.
func (s *Store) Close() error { return s.file.Close() }

// Idle returns the time since the last update of the store, given the time of [Uptime]. It
// reports false for an update before the machine was started.
func (h *Header) Idle(uptime time.Duration) (time.Duration, bool) {
	idle := uptime - h.Updated
	return idle, idle >= 0
}
