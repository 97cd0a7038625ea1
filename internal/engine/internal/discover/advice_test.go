// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestUnreadableDirectoryHasItsOwnAdvice(t *testing.T) {
	x := newFixture(t)
	dir := x.path("rings")
	d := x.directory(func(c *options) {
		c.Path = dir
		c.OpenDir = func(name string) (*files.Dir, error) {
			if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm() == 0 { // root could open it
				return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrPermission}
			}
			return files.OpenDir(dir, name)
		}
	})
	for _, step := range []struct {
		prepare func() error
		want    string
	}{
		{func() error { return nil }, "doesn't exist; agents don't create it"},
		{func() error { return os.WriteFile(dir, nil, 0o600) }, "because it is another kind of file"},
		{func() error { return os.Remove(dir) }, "doesn't exist"},
		{func() error { return os.Mkdir(dir, 0) }, "has no permission to list it"},
	} {
		must.OK(t, step.prepare())
		x.notices = nil
		x.advance(time.Hour)
		d.walk()
		d.walk()
		list := x.noticesOf(notice.DirectoryMissing)
		if len(list) != 1 || !strings.Contains(list[0].Text, step.want) || strings.Contains(list[0].String(), "(not a directory)") {
			t.Errorf("notices = %v, want one with %q", list, step.want)
		}
	}
}

func TestIncludeThatMatchesNothingIsReportedOnce(t *testing.T) {
	x := newFixture(t)
	d := x.directory(func(c *options) { c.Include, c.Exclude = []string{"decode-.*"}, []string{"*.log"} })
	x.round(d)
	if list := x.noticesOf(notice.PatternsUnmatched); len(list) != 0 {
		t.Errorf("in an empty directory: notices = %v", list)
	}
	x.ring("decode-0", ringbuf.V4, 16)
	x.ring("decode-1", ringbuf.V4, 16)
	for range 3 {
		x.round(d)
		x.advance(time.Hour)
	}
	list := x.noticesOf(notice.PatternsUnmatched)
	if len(list) != 1 || !strings.Contains(list[0].Text, "include (decode-.*) matches none of the 2 files") {
		t.Errorf("notices = %v", list)
	}
}

func TestIncludeThatMatchesExcludedFilesIsNotReported(t *testing.T) {
	x := newFixture(t)
	touch(t, x.path("a.log"), "")
	d := x.directory(func(c *options) { c.Include, c.Exclude = []string{"a*"}, []string{"*.log"} })
	x.round(d)
	if list := x.noticesOf(notice.PatternsUnmatched); len(list) != 0 {
		t.Errorf("notices = %v", list)
	}
}

func TestRingsOnADiskAreReportedOncePerDirectory(t *testing.T) {
	for dir, want := range map[string]int{t.TempDir(): 1, "/dev/shm": 0} {
		dir, err := os.MkdirTemp(dir, "discover-test-") //nolint:usetesting // on two file systems
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		x := newFixture(t)
		x.dir = dir
		x.ring("a", ringbuf.V4, 16)
		f, err := files.OpenDir(dir, ".")
		must.OK(t, err)
		onDisk := f.OnDisk()
		must.OK(t, f.Close())
		if onDisk != (want == 1) {
			t.Skipf("%s is on another file system than expected", filepath.Dir(dir))
		}
		x.ring("b", ringbuf.V4, 16)
		d := x.directory(nil)
		for range 3 {
			x.round(d)
			x.advance(time.Hour)
		}
		if list := x.noticesOf(notice.DirectoryOnDisk); len(list) != want {
			t.Errorf("%s: notices = %v, want %d", dir, list, want)
		}
	}
}
