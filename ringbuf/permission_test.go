// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

const nobody = 65534

func TestPermissionErrorsNameTheUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	for _, c := range []struct {
		name    string
		file    os.FileMode
		dir     os.FileMode
		text    bool // no ring, but a text file
		mode    Mode
		events  int
		notRing bool
		says    []string
	}{
		{name: "an agent's ring, consumed", file: 0o644, dir: 0o755, mode: Consume, says: []string{
			"no permission to consume", "belongs to uid 0", fmt.Sprint("runs as uid ", nobody), "observe instead",
		}},
		{name: "an agent's ring, observed", file: 0o644, dir: 0o755, mode: Observe, events: 5},
		{name: "a private ring, consumed", file: 0o600, dir: 0o755, mode: Consume, says: []string{"belongs to uid 0"}},
		{name: "a private ring, observed", file: 0o600, dir: 0o755, mode: Observe, says: []string{"no permission to read", "uid 0"}},
		{name: "a ring that all may write", file: 0o666, dir: 0o755, mode: Consume, events: 5},
		{name: "another user's text file", file: 0o644, dir: 0o755, text: true, mode: Consume, notRing: true},
		{name: "a private directory", file: 0o644, dir: 0o700, mode: Consume, says: []string{"permission denied"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := othersRing(t)
			if c.text {
				must.OK(t, os.WriteFile(path, []byte(strings.Repeat("some text\n", 50)), c.file))
			}
			must.OK(t, os.Chmod(path, c.file))
			before := snapshot(t, path)
			must.OK(t, os.Chmod(filepath.Dir(path), c.dir))
			o := openElsewhere(t, path, c.mode, nil, fmt.Sprint("RINGBUF_TEST_UID=", nobody))
			o.quit()
			want := outcome{Text: o.Text, Events: c.events, NotRing: c.notRing, Permission: c.says != nil}
			if c.dir == 0o755 && c.says != nil {
				want.UID = nobody
			}
			equal(t, "outcome", o.outcome, want)
			for _, part := range append(c.says, path) {
				if c.says != nil && !strings.Contains(o.Text, part) {
					t.Errorf("%q doesn't contain %q", o.Text, part)
				}
			}
			equal(t, "the file", snapshot(t, path), before)
		})
	}
}

// In a container, a read-only mount is a likely cause. The uid is correct then, and
// naming it would mislead.
func TestReadOnlyMountIsNamedAsTheCause(t *testing.T) {
	path := othersRing(t)
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	o := openElsewhere(t, path, Consume, attr, "RINGBUF_TEST_MOUNT=1")
	equal(t, "outcome", o.outcome, outcome{Text: o.Text, Permission: true, ReadOnly: true})
	if text := (&files.PermissionError{ReadOnly: true}).Error(); !strings.Contains(o.Text, text) {
		t.Errorf("%q doesn't contain %q", o.Text, text)
	}
	o.quit()
	o = openElsewhere(t, path, Observe, attr, "RINGBUF_TEST_MOUNT=1")
	if o.Text != "" || o.Events != 5 {
		t.Errorf("%+v", o.outcome)
	}
}

// othersRing creates a ring with 5 events in a directory that other users can enter,
// unlike the test's temporary directory.
func othersRing(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)))
	path := filepath.Join(dir, "agent")
	ringtest.Make(t, path, ringtest.Header{WritePos: 5, Version: 4, ExpectedVersion: 4, Capacity: 16, Mask: 15}, 16*16)
	return path
}
