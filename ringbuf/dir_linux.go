// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an open directory. Its methods look up entries of this directory,
// even if its path now refers to another one, and never follow symbolic links.
type Dir struct{ file *os.File }

// OpenDir opens the directory name below dir. The name "." stands for dir itself.
//
// The path dir is trusted, so it may contain symbolic links. Nothing below it is:
// a user who can rename files there can replace a directory with a link or a FIFO at
// any time. In that case, the error wraps [ErrNotDir].
func OpenDir(dir, name string) (*Dir, error) {
	f, err := openDir(unix.AT_FDCWD, dir, dir, 0)
	if err != nil || name == "." {
		return f, err
	}
	below, err := f.Open(name)
	return below, errors.Join(err, f.Close())
}

// Open opens a directory below this one. No part of the name may be a symbolic link,
// as for [OpenDir].
func (f *Dir) Open(name string) (*Dir, error) {
	if !filepath.IsLocal(name) {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(f.file.Name(), name), Err: fs.ErrInvalid}
	}
	at := f
	for part := range strings.SplitSeq(filepath.Clean(name), "/") {
		below, err := openDir(int(at.file.Fd()), part, filepath.Join(at.file.Name(), part), unix.O_NOFOLLOW)
		if at != f {
			err = errors.Join(err, at.Close())
		}
		if err != nil {
			return nil, err
		}
		at = below
	}
	return at, nil
}

// OpenBelow opens the directory at a path as if this one were the root directory:
// symbolic links and .. can't lead out of it. It doesn't follow the magic links of
// /proc. Before Linux 5.6, it follows no links at all.
func (f *Dir) OpenBelow(path string) (*Dir, error) {
	how := unix.OpenHow{
		Flags:   unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range 100 {
		fd, err := unix.Openat2(int(f.file.Fd()), path, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // EAGAIN: a concurrent rename
			continue
		case errors.Is(err, unix.ENOSYS):
			return f.Open(filepath.Join(".", filepath.Clean("/"+path)))
		}
		return newDir(fd, filepath.Join(f.file.Name(), path), err)
	}
	return nil, &fs.PathError{Op: "open", Path: filepath.Join(f.file.Name(), path), Err: unix.EAGAIN}
}

// openDir opens a directory. O_DIRECTORY refuses other files before they are
// opened, so a FIFO can't block it.
func openDir(at int, name, path string, flags int) (*Dir, error) {
	fd, err := openRetry(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	return newDir(fd, path, err)
}

// newDir returns the directory, or the error, that opening it produced.
func newDir(fd int, path string, err error) (*Dir, error) {
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotDir}
	case errors.Is(err, unix.ELOOP):
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w (%w)", ErrNotDir, err)}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{file: os.NewFile(uintptr(fd), path)}, nil
}

// ReadDir is like [os.File.ReadDir].
func (f *Dir) ReadDir(n int) ([]fs.DirEntry, error) { return f.file.ReadDir(n) }

// Lstat describes an entry. It doesn't follow a symbolic link.
func (f *Dir) Lstat(name string) (FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(f.file.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return FileInfo{}, &fs.PathError{Op: "lstat", Path: filepath.Join(f.file.Name(), name), Err: err}
	}
	return FileInfo{
		ID:      FileID{Dev: st.Dev, Ino: st.Ino},
		Mode:    st.Mode,
		Size:    st.Size,
		ModTime: time.Unix(st.Mtim.Unix()),
	}, nil
}

// OpenFile opens a regular file in the directory for reading. Only the option
// [OwnedBy] applies. The error wraps [fs.ErrNotExist] or [ErrNotRegular], or is a
// [PermissionError] or an [OwnerError].
func (f *Dir) OpenFile(name string, opts ...Option) (*os.File, error) {
	o := newOptions(opts)
	o.dir = f
	file, st, err := openChecked(filepath.Join(f.file.Name(), name), Observe, o)
	if err != nil {
		return nil, err
	}
	if err := o.check(st.Uid); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Close closes the directory. Files and directories opened through it stay open.
func (f *Dir) Close() error { return f.file.Close() }

// location is a path, or an entry of a directory.
type location struct {
	at   int // a directory's file descriptor, or AT_FDCWD
	name string
}

func (o options) locate(path string) location {
	if o.dir == nil {
		return location{at: unix.AT_FDCWD, name: path}
	}
	return location{at: int(o.dir.file.Fd()), name: filepath.Base(path)}
}
