// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// zfsMagic is from OpenZFS's sys/fs/zfs.h; x/sys/unix lacks it.
const zfsMagic = 0x2fc12fc1

// remoteNames are the names of common file systems on which rings are refused.
var remoteNames = map[uint32]string{
	unix.FUSE_SUPER_MAGIC: "fuse", unix.NFS_SUPER_MAGIC: "nfs", unix.SMB2_SUPER_MAGIC: "cifs", unix.V9FS_MAGIC: "9p",
	unix.CEPH_SUPER_MAGIC: "ceph", unix.RAMFS_MAGIC: "ramfs",
}

// CheckLocal returns an [ErrFileSystem] if another machine or process serves the
// file's pages. If such a page never arrived, the whole process would hang: the Go
// runtime can't preempt a thread in a page fault, so the next garbage collection
// would wait for it forever. It also returns one for ramfs: users of containers can
// mount it, and the kernel doesn't report which pages of a file on ramfs exist.
//
// On overlayfs, the file belongs to the file system of a layer, which may be any. A file that is open for writing is in the upper
// layer, whose file system is local.
//
// inMemory reports whether the file system is in memory: there, reading a hole through a mapping allocates memory.
func CheckLocal(f *os.File, writable bool) (inMemory bool, err error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false, fmt.Errorf("determine the file system: %w", err)
	}
	risk := "can block this process forever"
	switch kind := uint32(fs.Type); kind {
	case unix.TMPFS_MAGIC:
		return true, nil
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfsMagic:
		return false, nil
	case unix.OVERLAYFS_SUPER_MAGIC:
		return checkLayer(f, writable)
	case unix.RAMFS_MAGIC:
		risk = "allocates memory without limit"
		fallthrough
	default:
		name := remoteNames[kind]
		if name == "" {
			name = fmt.Sprintf("%#x", kind)
		}
		return false, fmt.Errorf("%w: %s %s; set NIXL_TELEMETRY_DIR to tmpfs, such as /dev/shm, or to a local disk", ErrFileSystem, name, risk)
	}
}

// checkLayer is CheckLocal for a file on overlayfs. The attributes that the layer's file system supports tell local file
// systems from others: all have the attribute nodump, and those on a disk, except for XFS, also that of compressed files.
// tmpfs has nodump since Linux 6.0. On XFS, treating the file like one on tmpfs does no harm.
func checkLayer(f *os.File, writable bool) (inMemory bool, err error) {
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, 0, &st); err != nil {
		return false, fmt.Errorf("determine the file system below overlayfs: %w", err)
	}
	if st.Attributes_mask&unix.STATX_ATTR_NODUMP == 0 && !writable {
		return false, fmt.Errorf("%w: what is below overlayfs may not be local; set NIXL_TELEMETRY_DIR to tmpfs, such as /dev/shm, or to a local disk", ErrFileSystem)
	}
	return st.Attributes_mask&unix.STATX_ATTR_COMPRESSED == 0, nil
}
