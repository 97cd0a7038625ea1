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

// Folder is an open directory. What is looked for in it is one of its own
// entries, whatever becomes of the path that it was opened by, and is never
// looked for through a symbolic link.
type Folder struct{ file *os.File }

// OpenFolder opens the folder name below dir, or dir itself, which is ".".
//
// The path dir may lead through symbolic links, as somebody trusted has chosen
// it. Nothing below may: who can rename files there can put a link or a FIFO
// where a folder was a moment ago. Such a folder is [ErrNotFolder].
func OpenFolder(dir, name string) (*Folder, error) {
	f, err := openFolder(unix.AT_FDCWD, dir, dir, 0)
	if err != nil || name == "." {
		return f, err
	}
	below, err := f.Open(name)
	return below, errors.Join(err, f.Close())
}

// Open opens a folder in this one, or below such a folder. No part of the name may
// be a symbolic link, as for [OpenFolder].
func (f *Folder) Open(name string) (*Folder, error) {
	if !filepath.IsLocal(name) {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(f.file.Name(), name), Err: fs.ErrInvalid}
	}
	at := f
	for part := range strings.SplitSeq(filepath.Clean(name), "/") {
		below, err := openFolder(int(at.file.Fd()), part, filepath.Join(at.file.Name(), part), unix.O_NOFOLLOW)
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

// OpenBelow opens the folder at a path as a process does whose root directory is
// this folder: symbolic links and .. don't lead out of it. The magic links of
// /proc aren't followed. Before Linux 5.6, no links are followed at all.
func (f *Folder) OpenBelow(path string) (*Folder, error) {
	how := unix.OpenHow{
		Flags:   unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range 100 {
		fd, err := unix.Openat2(int(f.file.Fd()), path, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something was renamed meanwhile
			continue
		case errors.Is(err, unix.ENOSYS):
			return f.Open(filepath.Join(".", filepath.Clean("/"+path)))
		}
		return newFolder(fd, filepath.Join(f.file.Name(), path), err)
	}
	return nil, &fs.PathError{Op: "open", Path: filepath.Join(f.file.Name(), path), Err: unix.EAGAIN}
}

// openFolder opens a directory. O_DIRECTORY turns away what is none before it
// is opened, so that a FIFO doesn't make it wait.
func openFolder(at int, name, path string, flags int) (*Folder, error) {
	fd, err := openRetry(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	return newFolder(fd, path, err)
}

// newFolder returns what came of opening a directory.
func newFolder(fd int, path string, err error) (*Folder, error) {
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w (%w)", ErrNotFolder, err)}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Folder{file: os.NewFile(uintptr(fd), path)}, nil
}

// ReadDir is [os.File.ReadDir].
func (f *Folder) ReadDir(n int) ([]fs.DirEntry, error) { return f.file.ReadDir(n) }

// Lstat looks at an entry. A symbolic link isn't followed.
func (f *Folder) Lstat(name string) (FileInfo, error) {
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

// OpenFile opens a regular file in the folder for reading. Of the options, only
// [OwnedBy] applies. The error wraps [fs.ErrNotExist] or [ErrNotRegular], or is a
// [PermissionError] or an [OwnerError].
func (f *Folder) OpenFile(name string, opts ...Option) (*os.File, error) {
	o := newOptions(opts)
	o.folder = f
	file, st, err := openChecked(filepath.Join(f.file.Name(), name), Observe, o)
	if err != nil {
		return nil, err
	}
	if err := o.check(st.Uid); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Close gives up the folder. What was opened in it stays open.
func (f *Folder) Close() error { return f.file.Close() }

// spot is where a ring is looked for: a path, or an entry of a folder.
type spot struct {
	at   int
	name string
}

func (o options) spot(path string) spot {
	if o.folder == nil {
		return spot{at: unix.AT_FDCWD, name: path}
	}
	return spot{at: int(o.folder.file.Fd()), name: filepath.Base(path)}
}
