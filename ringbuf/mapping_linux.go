// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// mapping is a mapped ring file, the Backing that OpenReader and Create use. It stays
// mapped until Close.
type mapping struct {
	f    *os.File // nil if it is closed
	path string
	mem  []byte

	inMemory bool // whether the file system is in memory
}

// charges implements fileBacking.
func (m *mapping) charges() bool { return m.inMemory }

// file implements fileBacking.
func (m *mapping) file() *os.File { return m.f }

// mapFile maps a file. Its memory is valid until the Backing is closed.
func mapFile(f *os.File, size int64, write, inMemory bool) ([]byte, fileBacking, error) {
	prot := unix.PROT_READ
	if write {
		prot |= unix.PROT_WRITE
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), prot, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return mem, &mapping{f: f, path: f.Name(), mem: mem, inMemory: inMemory}, nil
}

// closeFile implements fileBacking.
func (m *mapping) closeFile() error {
	f := m.f
	m.f = nil
	return f.Close()
}

// Stat implements Backing.
func (m *mapping) Stat() (FileState, error) {
	if m.f != nil {
		return statFile(m.f)
	}
	f, err := files.Open(m.path, os.O_RDONLY)
	if err != nil {
		return FileState{}, err
	}
	defer f.Close()
	return statFile(f)
}

func statFile(f *os.File) (s FileState, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return s, err
	}
	return FileState{Size: st.Size, Allocated: st.Blocks * 512, Dev: st.Dev, Ino: st.Ino}, nil
}

// Now implements Backing.
func (m *mapping) Now() time.Time { return time.Now() }

// Guard implements Backing.
func (m *mapping) Guard(fn func()) (err error) {
	defer m.recovered(debug.SetPanicOnFault(true), &err)
	fn()
	return nil
}

func (m *mapping) recovered(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		// The panic for a bad address when debug.SetPanicOnFault is on.
		if _, ok := v.(interface {
			runtime.Error
			Addr() uintptr
		}); !ok {
			panic(v)
		}
		*err = m.faulted()
	}
}

// faulted returns the reason why a page of the ring is missing: the file has
// shrunk, or the file is sparse and its file system has no space for the page.
func (m *mapping) faulted() error {
	state, err := m.Stat()
	switch {
	case err != nil:
		return err
	case state.Size < int64(len(m.mem)):
		return ErrShrunk
	}
	return fmt.Errorf("no space for a part of the file that was never written: %w", unix.ENOSPC)
}

// Close unmaps and closes the file.
func (m *mapping) Close() error {
	err := unix.Munmap(m.mem)
	if m.f == nil {
		return err
	}
	return errors.Join(err, m.closeFile())
}
