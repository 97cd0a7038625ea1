// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// smallTmpfs mounts a tmpfs of the given size.
func smallTmpfs(t *testing.T, size string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a tmpfs")
	}
	dir = t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("can't mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// On a full tmpfs, there is no page for the header. Create returns an error instead
// of crashing.
func TestCreateOnAFullTmpfs(t *testing.T) {
	dir := smallTmpfs(t, "8k")
	must.OK(t, os.WriteFile(filepath.Join(dir, "other"), make([]byte, 8192), 0o600))
	for _, l := range Layouts() {
		path := filepath.Join(dir, l.String())
		_, err := Create(path, l, 4096)
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%v: error %v, want %v", l, err, unix.ENOSPC)
			continue
		}
		says(t, err, path)
	}
}

// With space for some pages, Create succeeds and pushes fail when the space is used.
func TestPushOnAFullTmpfs(t *testing.T) {
	w := create(t, filepath.Join(smallTmpfs(t, "8k"), "agent"), V4, 4096)
	n, err := w.PushBatch(samples(V4, 0, 4095))
	if want := (8192 - 40) / 16; !errors.Is(err, unix.ENOSPC) || n != want {
		t.Errorf("pushed %d, want %d: %v", n, want, err)
	}
	r := open(t, w.Path(), Consume)
	equal(t, "events", read(t, r), samples(V4, 0, n))
	commit(t, r)
}
