//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a ring's file, open and mapped: the Backing of OpenReader and
// Create. It is mapped until Close.
type mapping struct {
	file *os.File
	mem  []byte
	// remote says that the file system may make a page fault wait. The Go runtime
	// can't stop a thread that waits in one, so the next garbage collection would
	// stop the whole process. See fetch.
	remote  bool
	scratch []byte
}

func mapFile(f *os.File, size int64, prot int) (*mapping, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return &mapping{file: f, mem: mem}, nil
}

// Stat implements Backing.
func (m *mapping) Stat() (s FileState, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(m.file.Fd()), &st); err != nil {
		return s, err
	}
	return stateOf(&st), nil
}

func stateOf(st *unix.Stat_t) FileState {
	changed := st.Ctim.Nano()
	return FileState{Size: st.Size, Changed: changed, Age: time.Now().UnixNano() - changed}
}

// memoryFault is the panic that the runtime raises for a bad address when
// debug.SetPanicOnFault is on.
type memoryFault interface {
	runtime.Error
	Addr() uintptr
}

// Guard implements Backing.
func (m *mapping) Guard(fn func()) (err error) {
	if m.remote {
		if err := m.fetch(); err != nil {
			return err
		}
	}
	defer m.recovered(debug.SetPanicOnFault(true), &err)
	fn()
	return nil
}

func (m *mapping) recovered(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		f, ok := v.(memoryFault)
		start := uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
		if !ok || f.Addr() < start || f.Addr()-start >= uintptr(len(m.mem)) {
			panic(v)
		}
		*err = m.faulted()
	}
}

// faulted returns why a page of the ring isn't there: the file has shrunk, or, as
// it is sparse, its file system has no room for the page.
func (m *mapping) faulted() error {
	state, err := m.Stat()
	switch {
	case err != nil:
		return err
	case state.Size < int64(len(m.mem)):
		return ErrShrunk
	}
	return fmt.Errorf("a part of the file that was never written is not available: %w", unix.ENOSPC)
}

// fetch reads the file through read(2), which leaves its pages in memory. A thread
// may wait in a system call for as long as it takes.
func (m *mapping) fetch() error {
	if m.scratch == nil {
		m.scratch = make([]byte, 1<<16)
	}
	for at := 0; at < len(m.mem); at += len(m.scratch) {
		if _, err := m.file.ReadAt(m.scratch, int64(at)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// willStore implements fileBacking: a store to a page that is being written back
// may wait for that.
func (m *mapping) willStore() error {
	if !m.remote {
		return nil
	}
	return unix.SyncFileRange(int(m.file.Fd()), 0, maxHeaderSize, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
}

// Close unmaps and closes the file. Unmapping writes back on FUSE, with a lock
// held that every thread of the process needs, so that is done before.
func (m *mapping) Close() error {
	var err error
	if m.remote {
		err = m.file.Sync()
	}
	return errors.Join(err, unix.Munmap(m.mem), m.file.Close())
}

// attended implements fileBacking: the kernel grants a write lease to the only
// open file description of a file, and a read lease if nobody can write.
func (m *mapping) attended(mode Mode) (bool, error) {
	kind := unix.F_WRLCK
	if mode == Observe {
		kind = unix.F_RDLCK
	}
	return leaseRefused(m.file, kind)
}

func leaseRefused(f *os.File, kind int) (bool, error) {
	switch _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind); {
	case errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("take a lease: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		return false, fmt.Errorf("give back a lease: %w", err)
	}
	return false, nil
}

// zfsMagic isn't in x/sys/unix; it is in OpenZFS's sys/fs/zfs.h.
const zfsMagic = 0x2fc12fc1

// domain implements fileBacking.
func (m *mapping) domain() (Domain, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(m.file.Fd()), &st); err != nil {
		return Domain{}, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(m.file.Fd()), &fs); err != nil {
		return Domain{}, err
	}
	d := Domain{Device: st.Dev}
	switch uint32(fs.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,
		unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic:
		d.Local = true
	}
	return d, nil
}
