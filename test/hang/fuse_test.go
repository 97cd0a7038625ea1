// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package hang

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// pageSize is the size of the kernel's requests for mapped pages.
const pageSize = 4096

// gate blocks requests while it is shut.
type gate struct {
	mu      sync.Mutex
	closed  chan struct{} // nil while it is open
	blocked bool          // whether it has blocked a request
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	closed := g.closed
	g.blocked = g.blocked || closed != nil
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
}

func (g *gate) mustHaveBlocked(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.blocked {
		t.Error("no request was blocked")
	}
}

// mount serves a file system at a new mount point until the test ends.
func mount(t *testing.T, root *share) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a FUSE file system needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("FUSE isn't available: %v", err)
	}
	dir := t.TempDir()
	server, err := fs.Mount(dir, root, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: "hang", Name: "hang",
		MaxWrite: pageSize, MaxReadAhead: pageSize, // a page per request
	}})
	if err != nil {
		t.Skipf("FUSE file systems can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		root.open()
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// share is a directory of files.
type share struct {
	fs.Inode

	files map[string][]byte
	pages gate // blocks pages in the middle of files
	names gate // blocks directory entries
}

func newShare(files map[string][]byte) *share { return &share{files: files} }

func (s *share) open() {
	s.pages.open()
	s.names.open()
}

var (
	_ fs.NodeOnAdder   = (*share)(nil)
	_ fs.NodeReaddirer = (*share)(nil)
	_ fs.NodeLookuper  = (*share)(nil)
)

func (s *share) OnAdd(ctx context.Context) {
	for name, content := range s.files {
		f := &file{content: content, share: s}
		s.AddChild(name, s.NewPersistentInode(ctx, f, fs.StableAttr{}), true)
	}
}

func (s *share) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	s.names.pass()
	var list []fuse.DirEntry
	for name, f := range s.Children() {
		list = append(list, fuse.DirEntry{Name: name, Mode: fuse.S_IFREG, Ino: f.StableAttr().Ino})
	}
	return fs.NewListDirStream(list), 0
}

func (s *share) Lookup(_ context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	s.names.pass()
	child := s.GetChild(name)
	if child == nil {
		return nil, syscall.ENOENT
	}
	if f, ok := child.Operations().(*file); ok {
		f.attr(&out.Attr)
	}
	return child, 0
}

// file is a file in memory.
type file struct {
	fs.Inode

	share *share

	mu      sync.Mutex
	content []byte
}

var (
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
)

func (f *file) attr(out *fuse.Attr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Mode, out.Size, out.Nlink = fuse.S_IFREG|0o644, uint64(len(f.content)), 1
}

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.attr(&out.Attr)
	return 0
}

func (*file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	// Opening a ring reads the header and the newest slots, so don't block those.
	if at >= 2*pageSize && at < int64(len(f.content))/2 {
		f.share.pages.pass()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := copy(into, f.content[min(at, int64(len(f.content))):])
	return fuse.ReadResultData(into[:n]), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint32(copy(f.content[min(at, int64(len(f.content))):], data)), 0
}

// ringFile returns the content of a ring's file with a number of pending events.
func ringFile(t *testing.T, capacity, events int) []byte {
	t.Helper()
	w, err := ringbuf.Create(filepath.Join(t.TempDir(), "ring"), ringbuf.V4, capacity)
	must.OK(t, err)
	push(t, w, events)
	must.OK(t, w.Close())
	content, err := os.ReadFile(w.Path())
	must.OK(t, err)
	return content
}
