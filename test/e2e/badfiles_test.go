// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// badFiles are files that aren't valid rings, with the level and a part of their log line.
var badFiles = []struct {
	name, level, says string
	make              func(t *testing.T, path string)
}{
	{"text", "debug", "not a NIXL telemetry ring", func(t *testing.T, path string) {
		t.Helper()
		writeFile(t, path, []byte(strings.Repeat("Not a ring, but a text of some length.\n", 50)))
	}},
	{"fifo", "debug", "not a regular file", func(t *testing.T, path string) {
		t.Helper()
		must.OK(t, syscall.Mkfifo(path, 0o644))
	}},
	{"symlink", "debug", "not a regular file", func(t *testing.T, path string) {
		t.Helper()
		// A link to a real ring isn't followed either.
		ring := ringtest.Copy(t, ringtest.Find(t, "v1.4.0/full_cap8"))
		must.OK(t, os.Symlink(ring, path))
	}},
	{"truncated", "warn", "invalid ring", func(t *testing.T, path string) {
		t.Helper()
		c := ringtest.Find(t, "v1.4.0/default4096_partial")
		must.OK(t, os.Truncate(ringtest.CopyTo(t, c, path), 4096))
	}},
	{"version6", "warn", "unknown ring version 6", func(t *testing.T, path string) {
		t.Helper()
		ringtest.Make(t, path, ringtest.NewHeader(6, 64), 64*16)
	}},
	{"version-1", "warn", "unknown ring version -1", func(t *testing.T, path string) {
		t.Helper()
		ringtest.Make(t, path, ringtest.NewHeader(-1, 64), 64*16)
	}},
	{"mask", "warn", "invalid ring", func(t *testing.T, path string) {
		t.Helper()
		h := ringtest.NewHeader(4, 64)
		h.Mask = 127
		ringtest.Make(t, path, h, 64*16)
	}},
	{"position", "warn", "invalid ring", func(t *testing.T, path string) {
		t.Helper()
		h := ringtest.NewHeader(4, 64)
		h.WritePos = 64
		ringtest.Make(t, path, h, 64*16)
	}},
	{"capacity1", "warn", "invalid ring", func(t *testing.T, path string) {
		t.Helper()
		ringtest.CopyTo(t, ringtest.Find(t, "v1.1.0/cap1_never_accepts"), path)
	}},
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, text, 0o600))
}

// Each invalid file is logged once and stays unchanged. Valid rings are read.
func TestInvalidFilesAreLoggedOnceAndNotChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, bad := range badFiles {
		bad.make(t, filepath.Join(dir, bad.name))
	}
	sub := filepath.Join(dir, "sub")
	must.OK(t, os.Mkdir(sub, 0o755))
	inDir := newAgent(t, sub, "not asked for")
	inDir.transfer(t, 1)
	before := snapshot(t, dir)

	a := newAgent(t, dir, "agent")
	a.transfer(t, 10)
	c := setup{
		sample: "local.yaml",
		overlays: []string{
			every(500 * time.Millisecond), exportTo("file"), "service: {telemetry: {logs: {level: debug}}}",
		},
		env: []string{rings(dir), "PORT=0"},
	}.start(t)
	c.awaitTotals(t, want(a))
	// After a dozen collections, the directory was searched several times and the files
	// were retried.
	must.Eventually(t, func() string {
		a.transfer(t, 1)
		if n := len(c.collections(t)); n < 12 {
			return fmt.Sprintf("%d collections", n)
		}
		return ""
	})
	c.Stop(t, syscall.SIGTERM)
	mustEqual(t, want(a), c.totals(t))

	for _, bad := range badFiles {
		path := filepath.Join(dir, bad.name)
		entries := c.about(path)
		if len(entries) != 1 || entries[0].Level != bad.level || !strings.Contains(entries[0].Error, bad.says) {
			t.Errorf("%s: want one entry of level %s with %q, got %d:\n%s",
				bad.name, bad.level, bad.says, len(entries), lines(entries))
		}
	}
	if entries := c.about(sub); len(entries) > 0 {
		t.Errorf("a directory was logged:\n%s", lines(entries))
	}
	after := snapshot(t, dir)
	delete(after, "agent")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("files have changed (-before +after):\n%s", d)
	}
}

// about returns the log entries about a path.
func (c *collector) about(path string) (list []entry) {
	for _, e := range c.entries() {
		if e.Path == path {
			list = append(list, e)
		}
	}
	return list
}

func lines(list []entry) string {
	var text strings.Builder
	for _, e := range list {
		fmt.Fprintln(&text, e.line)
	}
	return text.String()
}

// snapshot describes the files below a directory and their contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		about := info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			about += fmt.Sprintf(" %d bytes, of %v, %x", info.Size(), info.ModTime(), sha256.Sum256(content))
		}
		if path != dir {
			files[strings.TrimPrefix(path, dir+"/")] = about
		}
		return nil
	})
	must.OK(t, err)
	return files
}
