// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Each configured directory may have its own advice. A discovery finds many directories.
func TestPatternsThatSelectNothingAreReportedOnce(t *testing.T) {
	for source, want := range map[string]int{"": 2, "processes": 1} {
		x := newFixture(t)
		cfg := Config{Include: []string{"decode-*"}, Now: x.clock}
		cfg.Source = source
		cfg.Find = func(time.Time) (map[string]Location, error) {
			return Configured([]string{x.path("1"), x.path("2")}, "", DefaultIdentifyBy).Find(x.now)
		}
		for _, name := range []string{"1/a", "2/a"} {
			must.OK(t, os.Mkdir(filepath.Dir(x.path(name)), 0o700))
			x.ring(name, ringbuf.V4, 16)
		}
		w := NewWatcher(cfg, x.owner.send, notice.New(x.report, x.clock))
		w.Start()
		for range 3 {
			w.Refresh()
			x.advance(time.Hour)
		}
		x.owner.stop()
		must.OK(t, w.Stop(t.Context()))
		if list := x.noticesOf(notice.PatternsUnmatched); len(list) != want {
			t.Errorf("%s: notices = %v, want %d", source, list, want)
		}
	}
}

func TestRingsOnADiskAreReportedOncePerDirectory(t *testing.T) {
	x := newFixture(t)
	x.ring("a", ringbuf.V4, 16)
	x.ring("b", ringbuf.V4, 16)
	f, err := files.OpenDir(x.dir, ".")
	must.OK(t, err)
	defer f.Close()
	d, want := x.directory(nil), 0
	if f.OnDisk() { // else the test's directory is on tmpfs
		want = 1
	}
	for range 3 {
		x.round(d)
		x.advance(time.Hour)
	}
	if list := x.noticesOf(notice.DirectoryOnDisk); len(list) != want {
		t.Errorf("notices = %v, want %d", list, want)
	}
}
