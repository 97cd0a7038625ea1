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
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// tree returns a directory that contains a subdirectory with a ring, and other kinds
// of files that an attacker could put in its place.
func tree(t *testing.T) (dir string) {
	t.Helper()
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, sub := range []string{filepath.Join(dir, "sub", "deep"), filepath.Join(elsewhere, "deep")} {
		must.OK(t, os.MkdirAll(sub, 0o750))
		must.OK(t, os.WriteFile(filepath.Join(sub, "agent"), []byte("ring"), 0o600))
	}
	must.OK(t, os.Symlink(elsewhere, filepath.Join(dir, "link")))
	must.OK(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	return dir
}

// A FIFO would block an ordinary open until it has a writer.
func TestOpenDirRefusesLinksAndOtherFiles(t *testing.T) {
	dir := tree(t)
	base, err := OpenDir(dir, ".")
	must.OK(t, err)
	defer base.Close()
	before := openFiles()
	for name, want := range map[string]error{
		".": nil, "sub": nil, "sub/deep": nil,
		"link": ErrNotDir, "link/deep": ErrNotDir, "fifo": ErrNotDir, "fifo/deep": ErrNotDir, "file": ErrNotDir,
		"none": fs.ErrNotExist, "sub/none/deep": fs.ErrNotExist,
		"..": fs.ErrInvalid, "sub/../../x": fs.ErrInvalid, "/": fs.ErrInvalid,
	} {
		one, err1 := OpenDir(dir, name)
		other, err2 := base.Open(name)
		if !errors.Is(err1, want) || !errors.Is(err2, want) {
			t.Errorf("%s: %v and %v, want %v", name, err1, err2, want)
		}
		if want == nil {
			must.OK(t, errors.Join(one.Close(), other.Close()))
		}
	}
	if _, err := OpenDir(filepath.Join(dir, "none"), "sub"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing base: %v", err)
	}
	if after := openFiles(); after != before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// The base directory is trusted and may be a link.
func TestOpenDirFollowsALinkAsItsBase(t *testing.T) {
	f, err := OpenDir(filepath.Join(tree(t), "link"), "deep")
	must.OK(t, err)
	defer f.Close()
	if info, err := f.Lstat("agent"); err != nil || info.Size == 0 || info.IsDir() {
		t.Errorf("the file in it is %+v, %v", info, err)
	}
}

func TestOpenBelowStaysInTheDirectory(t *testing.T) {
	dir := tree(t)
	for link, target := range map[string]string{"inside": "/sub", "outside": "/../../etc", "magic": "/proc/self/root"} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	root, err := OpenDir(dir, ".")
	must.OK(t, err)
	defer root.Close()
	for path, want := range map[string]error{
		"/sub/deep": nil, "sub/deep/": nil, "/../sub/../sub/deep": nil, "/inside/deep": nil,
		"/outside": fs.ErrNotExist, "/magic": fs.ErrNotExist, "/link": fs.ErrNotExist, "/none": fs.ErrNotExist, "": fs.ErrNotExist,
		"/fifo": ErrNotDir, "/file": ErrNotDir,
	} {
		f, err := root.OpenBelow(path)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}
		if _, err := f.Lstat("agent"); err != nil {
			t.Errorf("%q: %v", path, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRenamedDirectoryStillOpensItsOwnFiles(t *testing.T) {
	dir := tree(t)
	f, err := OpenDir(dir, "sub/deep")
	must.OK(t, err)
	defer f.Close()
	must.OK(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "away")))
	must.OK(t, os.Rename(filepath.Join(dir, "link"), filepath.Join(dir, "sub")))
	info, err := f.Lstat("agent")
	must.OK(t, err)
	file, err := f.OpenFile("agent", os.O_RDWR)
	must.OK(t, err)
	defer file.Close()
	opened, err := file.Stat()
	must.OK(t, err)
	there, err := os.Lstat(filepath.Join(dir, "away", "deep", "agent"))
	must.OK(t, err)
	if diff := cmp.Diff([]ID{IDOf(there), IDOf(there)}, []ID{IDOf(opened), info.ID}); diff != "" || file.Name() != filepath.Join(dir, "sub", "deep", "agent") {
		t.Errorf("opened as %s (-want +got):\n%s", file.Name(), diff)
	}
}

func TestDirListsItsEntries(t *testing.T) {
	f, err := OpenDir(tree(t), ".")
	must.OK(t, err)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil || len(entries) != 4 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	for name, dir := range map[string]bool{"sub": true, "link": false, "fifo": false, "file": false} {
		if info, err := f.Lstat(name); err != nil || info.IsDir() != dir {
			t.Errorf("%s is %+v, %v", name, info, err)
		}
	}
	if _, err := f.Lstat("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing entry: %v", err)
	}
}

func TestFilesOfOtherOwnersAreRefused(t *testing.T) {
	f, err := OpenDir(tree(t), "sub/deep")
	must.OK(t, err)
	defer f.Close()
	me := uint32(os.Geteuid())
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR} {
		for _, allowed := range [][]uint32{{me + 1}, {me + 1, me + 2}} {
			_, err := f.OpenFile("agent", flag, allowed...)
			if !errors.Is(err, ErrOwner) || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), fmt.Sprintf("belongs to uid %d, which", me)) {
				t.Errorf("error is %v", err)
			}
		}
		for _, allowed := range [][]uint32{nil, {me + 1, me}} {
			file, err := f.OpenFile("agent", flag, allowed...)
			if err != nil {
				t.Errorf("allowed %v: %v", allowed, err)
				continue
			}
			must.OK(t, file.Close())
		}
	}
}

func TestLeaseIsRefusedWhileAFileIsOpenForWriting(t *testing.T) {
	path := filepath.Join(tree(t), "sub", "deep", "agent")
	ask := func(want bool) {
		t.Helper()
		f, err := Open(path, os.O_RDONLY)
		must.OK(t, err)
		defer f.Close()
		got, err := LeaseRefused(f, false)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EACCES) {
			t.Skipf("no leases here: %v", err)
		}
		if err != nil || got != want {
			t.Errorf("refused: %v, want %v (%v)", got, want, err)
		}
	}
	ask(false)
	writer, err := Open(path, os.O_RDWR)
	must.OK(t, err)
	ask(true)
	must.OK(t, writer.Close())
	reader, err := Open(path, os.O_RDONLY)
	must.OK(t, err)
	defer reader.Close()
	ask(false)
	must.OK(t, reader.Close())
	if _, err := LeaseRefused(reader, false); err == nil {
		t.Error("a closed file has a lease")
	}
}

// There, a mapping refers to the file of the layer below.
func TestLeaseIsUnsupportedOnOverlayfs(t *testing.T) {
	for upper, dir := range ringtest.Overlays(t) {
		f, err := Create(filepath.Join(dir, "agent"))
		must.OK(t, err)
		if refused, err := LeaseRefused(f, true); refused || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("on %s: refused %v, %v", upper, refused, err)
		}
		must.OK(t, f.Close())
	}
}
