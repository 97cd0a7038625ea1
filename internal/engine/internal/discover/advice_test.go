// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Each configured directory may have its own advice. A discovery finds many directories.
func TestPatternsThatSelectNothingAreReportedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		files, include, exclude []string
		want                    string
	}{
		"include":              {[]string{"decode-0", "decode-1", "a.log"}, []string{"decode-.*"}, []string{"*.log"}, "include (decode-.*) matches none of the 3 files"},
		"exclude":              {[]string{"a.log", "b.log", "c"}, []string{"a*", "b*"}, []string{"*.log"}, "exclude (*.log) matches all files in this directory that include (a*, b*) matches"},
		"one file is selected": {[]string{"a.log", "b"}, []string{"*"}, []string{"*.log"}, ""},
		"no files":             {nil, []string{"decode-*"}, nil, ""},
		"file of another kind": {[]string{storetest.Real}, []string{"decode-*"}, nil, ""},
	} {
		for source, lines := range map[string]int{"": 2, "processes": 1} {
			x := newFixture(t)
			cfg := Config{Include: tt.include, Exclude: tt.exclude, Now: x.clock}
			cfg.Source = source
			cfg.Find = func(time.Time) (map[string]Location, error) {
				return Configured([]string{x.path("1"), x.path("2")}, "", DefaultIdentifyBy).Find(x.now)
			}
			for _, dir := range []string{"1", "2"} {
				must.OK(t, os.Mkdir(x.path(dir), 0o700))
				for _, file := range tt.files {
					x.ring(filepath.Join(dir, file), ringbuf.V4, 16)
				}
			}
			w := NewWatcher(cfg, x.owner.send, notice.New(x.report, x.clock))
			w.Start()
			for range 3 {
				w.Refresh()
				x.advance(time.Hour)
			}
			x.owner.stop()
			must.OK(t, w.Stop(t.Context()))
			list := x.noticesOf(notice.PatternsUnmatched)
			if tt.want == "" {
				lines = 0
			}
			if len(list) != lines || lines > 0 && !strings.Contains(list[0].Text, tt.want) {
				t.Errorf("%s, %q: notices = %v", name, source, list)
			}
		}
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
