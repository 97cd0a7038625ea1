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
// seeks reports whether the file system finds holes quickly. ZFS, which has large blocks,
// writes the file to the disk first. The pages of its holes can be reclaimed.
func CheckLocal(f *os.File) (seeks bool, err error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false, fmt.Errorf("determine the file system: %w", err)
	}
	risk := "can block this process forever"
	switch kind := uint32(fs.Type); kind {
	case unix.TMPFS_MAGIC, unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,
		unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic:
		return fs.Bsize <= int64(os.Getpagesize()), nil
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
