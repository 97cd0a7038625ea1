// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	fd, err := openRetry(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC|flags)
	return newDir(fd, path, err)
}

// newDir returns the directory, or the error, that opening it produced.
func newDir(fd int, path string, err error) (*Dir, error) {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = ErrNotDir
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{file: os.NewFile(uintptr(fd), path)}, nil
}

// ReadDir is like [os.File.ReadDir].
func (f *Dir) ReadDir(n int) ([]fs.DirEntry, error) { return f.file.ReadDir(n) }

// Lstat describes an entry. It doesn't follow a symbolic link.
func (f *Dir) Lstat(name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(f.file.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, &fs.PathError{Op: "lstat", Path: filepath.Join(f.file.Name(), name), Err: err}
	}
	return infoOf(&st), nil
}

// Stat describes the directory.
func (f *Dir) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.file.Fd()), &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.file.Name(), Err: err}
	}
	return infoOf(&st), nil
}

// Stat describes the file at a path. It follows symbolic links.
func Stat(path string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		ID:      ID{Dev: st.Dev, Ino: st.Ino},
		Mode:    st.Mode,
		Owner:   st.Uid,
		Size:    st.Size,
		ModTime: time.Unix(st.Mtim.Unix()),
	}
}

// OpenFile opens a regular file in the directory, and nothing else. flag is os.O_RDONLY or
// os.O_RDWR. If there are owners, the file must belong to one of them. The error wraps
// [fs.ErrNotExist] or [ErrNotRegular], [ErrOwner], or is a [PermissionError].
func (f *Dir) OpenFile(name string, flag int, owners ...uint32) (*os.File, error) {
	return open(int(f.file.Fd()), name, filepath.Join(f.file.Name(), name), flag, owners)
}

// OnDisk reports whether the directory's files may be on a disk: its file system isn't tmpfs.
func (f *Dir) OnDisk() bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(f.file.Fd()), &fs) == nil && fs.Type != unix.TMPFS_MAGIC
}

// Close closes the directory. Files and directories opened through it stay open.
func (f *Dir) Close() error { return f.file.Close() }

// Open is [Dir.OpenFile] for a path.
func Open(path string, flag int) (*os.File, error) { return open(unix.AT_FDCWD, path, path, flag, nil) }

// Create opens a regular file for writing, and creates it with mode 0644, minus the umask, if
// it doesn't exist. The error is one of [Dir.OpenFile].
func Create(path string) (*os.File, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return regular(fd, path, nil)
}

// open checks the kind of file before opening it, because opening a device can have side
// effects, and again afterwards, because the name may then refer to another file.
func open(at int, name, path string, flag int, owners []uint32) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	if err := checkRegular(&st); err != nil {
		return nil, err
	}
	write := flag == os.O_RDWR
	if write && st.Mode&0o222 == 0 { // root could open it nevertheless
		return nil, &PermissionError{Owner: st.Uid, UID: uint32(os.Geteuid()), Write: true, Protected: true}
	}
	fd, err := openRetry(at, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK)
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS):
		return nil, &PermissionError{Owner: st.Uid, UID: uint32(os.Geteuid()), Write: write, ReadOnly: errors.Is(err, unix.EROFS)}
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%w: it is now a symbolic link", ErrNotRegular)
	case err != nil:
		return nil, err
	}
	return regular(fd, path, owners)
}

// regular returns an open file if it is a regular one of an allowed owner, and closes it
// otherwise.
func regular(fd int, path string, owners []uint32) (*os.File, error) {
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil {
		err = checkRegular(&st)
	}
	if err == nil && len(owners) > 0 && !slices.Contains(owners, st.Uid) {
		err = fmt.Errorf("the file belongs to uid %d, which %w", st.Uid, ErrOwner)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openRetry(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0o644) // used if it creates the file
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func checkRegular(st *unix.Stat_t) error {
	var kind string
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFLNK:
		kind = "symbolic link; links are not followed, configure the directory of its target instead"
	case unix.S_IFDIR:
		kind = "directory"
	case unix.S_IFIFO:
		kind = "FIFO"
	case unix.S_IFSOCK:
		kind = "socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "device"
	default:
		kind = "file of an unknown kind"
	}
	return fmt.Errorf("%w: it is a %s", ErrNotRegular, kind)
}

// LeaseRefused reports whether the kernel refuses a lease on a file, which it releases
// immediately. The kernel grants a write lease only if no other process has the file open,
// and a read lease only if none has it open for writing. The error wraps EACCES if this
// process is neither root nor the file's owner, EINVAL if the file system doesn't support
// leases, and [errors.ErrUnsupported] if it is granted on overlayfs: there, a mapping refers to
// the file of the layer below, so the kernel grants a lease although a process has the file mapped.
func LeaseRefused(f *os.File, write bool) (bool, error) {
	kind := unix.F_RDLCK
	if write {
		kind = unix.F_WRLCK
	}
	switch _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind); {
	case errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("acquire lease: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		return false, fmt.Errorf("release lease: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false, fmt.Errorf("determine the file system: %w", err)
	}
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return false, fmt.Errorf("overlayfs doesn't show whether a file is mapped: %w", errors.ErrUnsupported)
	}
	return false, nil
}

// IDOf returns the identity of a file that os.Lstat or os.Stat has described.
func IDOf(info fs.FileInfo) (id ID) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id = ID{Dev: st.Dev, Ino: st.Ino}
	}
	return id
}

// Uptime returns the time of CLOCK_MONOTONIC, which NIXL writes to stores: the time since the
// machine was started, without the time that it was suspended.
func Uptime() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano()), err
}
