//go:build !linux || !(amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
)

// FileID tells one file from another, also when both had the same path.
type FileID struct{ Dev, Ino uint64 }

// Reader reads one ring. On this system there is none.
type Reader struct{}

// OpenReader returns [errors.ErrUnsupported].
func OpenReader(path string, _ Mode, _ ...Option) (*Reader, error) {
	return nil, fmt.Errorf("open ring %s: %w: NIXL's rings exist on linux/amd64 and linux/arm64", path, errors.ErrUnsupported)
}

// Path is the path that the ring was opened by.
func (*Reader) Path() string { return "" }

// ID tells the ring's file from others that have or had the same path.
func (*Reader) ID() FileID { return FileID{} }

// SameFile says whether info is of the file that this reader has open.
func (*Reader) SameFile(fs.FileInfo) bool { return false }

// Owner is the uid that the ring's file belongs to.
func (*Reader) Owner() uint32 { return 0 }

// Layout is the ring's layout.
func (*Reader) Layout() Layout { return 0 }

// Capacity is the number of slots.
func (*Reader) Capacity() int { return 0 }

// Uncommitted is the number of events that were read and still stand in the ring.
func (*Reader) Uncommitted() int { return 0 }

// Position is the slot after the last event that was read.
func (*Reader) Position() uint64 { return 0 }

// Committed is the slot after the last event that was committed.
func (*Reader) Committed() uint64 { return 0 }

// CommitTo returns [errors.ErrUnsupported].
func (*Reader) CommitTo(uint64) error { return errors.ErrUnsupported }

// Skip returns [errors.ErrUnsupported].
func (*Reader) Skip(uint64) error { return errors.ErrUnsupported }

// Fingerprint returns [errors.ErrUnsupported].
func (*Reader) Fingerprint(_, _ uint64) (uint32, error) { return 0, errors.ErrUnsupported }

// Read returns [errors.ErrUnsupported].
func (*Reader) Read(int, func(Batch)) (int, error) { return 0, errors.ErrUnsupported }

// ReadInto returns [errors.ErrUnsupported].
func (*Reader) ReadInto([]Event) (int, error) { return 0, errors.ErrUnsupported }

// Commit returns [errors.ErrUnsupported].
func (*Reader) Commit() error { return errors.ErrUnsupported }

// Truncated says whether the file has become smaller than its ring.
func (*Reader) Truncated() bool { return false }

// Close does nothing.
func (*Reader) Close() error { return nil }

// Round looks at many rings. On this system there are none.
type Round struct{}

// Run calls fn.
func (*Round) Run(fn func()) (fault bool) {
	fn()
	return false
}

// Idle is false.
func (*Round) Idle(*Reader) bool { return false }

// Settled is true.
func (*Round) Settled(*Reader) bool { return true }

// Unattended returns [errors.ErrUnsupported].
func Unattended(path string, _ ...Option) (bool, error) {
	return false, fmt.Errorf("ring %s: %w", path, errors.ErrUnsupported)
}

// Folder is an open directory. On this system there is none.
type Folder struct{}

// OpenFolder returns [errors.ErrUnsupported].
func OpenFolder(dir, _ string) (*Folder, error) {
	return nil, fmt.Errorf("open %s: %w: NIXL's rings exist on linux/amd64 and linux/arm64", dir, errors.ErrUnsupported)
}

// Open returns [errors.ErrUnsupported].
func (*Folder) Open(string) (*Folder, error) { return nil, errors.ErrUnsupported }

// ReadDir returns [errors.ErrUnsupported].
func (*Folder) ReadDir(int) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }

// Lstat returns [errors.ErrUnsupported].
func (*Folder) Lstat(string) (FileInfo, error) { return FileInfo{}, errors.ErrUnsupported }

// Close does nothing.
func (*Folder) Close() error { return nil }

// Peek returns [errors.ErrUnsupported].
func Peek(path string) (Header, error) {
	return Header{}, fmt.Errorf("ring %s: %w", path, errors.ErrUnsupported)
}

// Writer is the agent's side of a ring. On this system there is none.
type Writer struct{}

// Create returns [errors.ErrUnsupported].
func Create(path string, _ Layout, _ int) (*Writer, error) {
	return nil, fmt.Errorf("create ring %s: %w: NIXL's rings exist on linux/amd64 and linux/arm64", path, errors.ErrUnsupported)
}

// Path is the path of the ring.
func (*Writer) Path() string { return "" }

// Layout is the ring's layout.
func (*Writer) Layout() Layout { return 0 }

// Capacity is the number of slots.
func (*Writer) Capacity() int { return 0 }

// Push returns [errors.ErrUnsupported].
func (*Writer) Push(Event) error { return errors.ErrUnsupported }

// PushBatch returns [errors.ErrUnsupported].
func (*Writer) PushBatch([]Event) (int, error) { return 0, errors.ErrUnsupported }

// Len returns [errors.ErrUnsupported].
func (*Writer) Len() (int, error) { return 0, errors.ErrUnsupported }

// Close does nothing.
func (*Writer) Close() error { return nil }

// Attended is always an error.
func (*Reader) Attended() (bool, error) { return false, errors.ErrUnsupported }

// Idle is always true.
func (*Reader) Idle() bool { return true }
