// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringtest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Overlays returns directories on overlayfs, as a container's own layer: one with its upper
// directory on tmpfs, and one with it in a temporary directory. The test is skipped if this
// process can't mount them.
func Overlays(tb testing.TB) map[string]string {
	tb.Helper()
	memory := tb.TempDir()
	mount(tb, "tmpfs", memory, "")
	return map[string]string{"tmpfs": overlay(tb, memory), "disk": overlay(tb, tb.TempDir())}
}

// overlay mounts an overlay whose layers are in a directory.
func overlay(tb testing.TB, layers string) string {
	tb.Helper()
	var options []string
	for _, name := range []string{"lower", "upper", "work"} {
		dir := filepath.Join(layers, name)
		must.OK(tb, os.Mkdir(dir, 0o755))
		options = append(options, name+"dir="+dir)
	}
	dir := tb.TempDir()
	mount(tb, "overlay", dir, strings.Join(options, ","))
	return dir
}

// mount mounts a file system until the end of the test.
func mount(tb testing.TB, kind, dir, options string) {
	tb.Helper()
	if err := syscall.Mount("none", dir, kind, 0, options); err != nil {
		tb.Skipf("can't mount %s: %v", kind, err)
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
}
