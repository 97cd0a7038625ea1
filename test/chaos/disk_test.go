// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package chaos

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk is a directory whose writes hang while it is locked. Reads hang while reads is
// locked, except those of the beginning of a file.
type disk struct {
	path string // equals data if FUSE file systems can't be mounted here
	data string // has the same files; this process must not map those at path, because it serves them
	sync.RWMutex
	reads sync.RWMutex
}

// newDisk mounts a disk.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{path: t.TempDir(), data: t.TempDir()}
	data := &fs.LoopbackRoot{Path: d.data}
	root := &diskNode{LoopbackNode: fs.LoopbackNode{RootData: data}, disk: d}
	data.RootNode = root
	opts := &fs.Options{}
	opts.DirectMountStrict = true
	opts.MaxStackDepth = -1 // invalid, so that the kernel doesn't pass writes to the files in data directly
	// Mount opens a file on the disk without O_CLOEXEC. A Collector of another test that starts before
	// it is closed would inherit it, and the disk couldn't be unmounted.
	syscall.ForkLock.RLock()
	server, err := fs.Mount(d.path, root, opts)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Logf("the disk doesn't hang, because FUSE file systems can't be mounted here: %v", err)
		d.path = d.data
		return d
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// diskNode is a file or directory on a disk.
type diskNode struct {
	fs.LoopbackNode
	disk *disk
}

// WrapChild implements [fs.NodeWrapChilder].
func (n *diskNode) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, disk: n.disk}
}

// Write implements [fs.NodeWriter].
func (n *diskNode) Write(ctx context.Context, f fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	n.disk.RLock()
	defer n.disk.RUnlock()
	w, ok := f.(fs.FileWriter)
	if !ok {
		return 0, syscall.EBADF
	}
	return w.Write(ctx, data, off)
}

// Read implements [fs.NodeReader].
func (n *diskNode) Read(ctx context.Context, f fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off > 0 {
		n.disk.reads.RLock()
		defer n.disk.reads.RUnlock()
	}
	r, ok := f.(fs.FileReader)
	if !ok {
		return nil, syscall.EBADF
	}
	return r.Read(ctx, dest, off)
}
