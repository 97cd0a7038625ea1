// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ringfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// If the content can't be read or is empty, the size decides.
func TestFilesAreClassifiedBySize(t *testing.T) {
	unreadable := &files.PermissionError{Owner: 1, UID: 2}
	for _, tt := range []struct {
		err       error
		size      int64
		unrelated bool
	}{
		{unreadable, 40 + 4096*16, false},
		{unreadable, 40 + 4096*48, false},
		{unreadable, 40 + 4096*56, false},
		{unreadable, 40, true},
		{unreadable, 4096, true},
		{unreadable, 0, true},
		{ringbuf.ErrNotReady, 40 + 12*16, true}, // no capacity
		{ringbuf.ErrNotReady, 4096, true},
		{ringbuf.ErrNotReady, 0, true},
		{ringbuf.ErrInvalid, 4096, false},
		{ringbuf.ErrNotRing, 40 + 4096*16, true},
		{ringbuf.ErrNotRegular, 40 + 4096*16, true},
		{ringbuf.ErrUnknownVersion, 4096, false},
	} {
		path := filepath.Join(t.TempDir(), "file")
		must.OK(t, os.WriteFile(path, nil, 0o600))
		must.OK(t, os.Truncate(path, tt.size))
		info, err := os.Stat(path)
		must.OK(t, err)
		if got := unrelated(path, fmt.Errorf("open ring: %w", tt.err), info); got != tt.unrelated {
			t.Errorf("%d bytes, %v: unrelated is %v", tt.size, tt.err, got)
		}
	}
}

// In a directory such as /tmp, no other file is treated as a ring, regardless of its size.
func TestOtherFilesAreNotTreatedAsRings(t *testing.T) {
	dir := t.TempDir()
	others := 0
	put := func(name string, content []byte) {
		t.Helper()
		for _, size := range []int{len(content), 40 + 64*16, 40 + 64*48, 40 + 64*56} { // including sizes of rings
			path := filepath.Join(dir, fmt.Sprintf("%s.%d", name, size))
			file := append(bytes.Clone(content), make([]byte, size)...)[:size]
			must.OK(t, os.WriteFile(path, file, 0o600))
			hour := time.Now().Add(-time.Hour)
			must.OK(t, os.Chtimes(path, hour, hour))
		}
		others += 4
	}
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	program, err := os.ReadFile("/proc/self/exe")
	must.OK(t, err)
	put("noise", noise)
	put("text", []byte(strings.Repeat("All work and no play makes Jack a dull boy.\n", 120)))
	put("zeros", make([]byte, 4999))
	put("elf", program[:5001])
	put("sqlite", append([]byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20\x00\x00\x00\x0c"), make([]byte, 4996)...))
	put("counters", []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9})
	put("pid", []byte("1234\n"))

	names := map[string]bool{}
	for _, c := range ringtest.Cases(t) {
		name := strings.ReplaceAll(c.Name, "/", "-")
		ringtest.CopyTo(t, c, filepath.Join(dir, name))
		names[name] = true
	}
	storetest.Copy(t, dir)()
	names[storetest.Real] = true
	hidden, shown := 0, 0
	err = List(t.Context(), []string{dir}, false, 0, func(e *Entry) {
		if e.Other {
			hidden++
			return
		}
		shown++
		if !names[filepath.Base(string(e.Path))] {
			t.Errorf("%s is shown: %s", e.Path, e.Problem)
		}
	})
	if err != nil || hidden != others || shown != len(names) {
		t.Errorf("%d of %d other files are hidden, %d of %d rings shown: %v", hidden, others, shown, len(names), err)
	}
}

func TestOnlyTheOwnerAndRootCanConsumeARing(t *testing.T) {
	path := ringtest.Copy(t, ringtest.Find(t, "v1.4.0/mixed_cap16"))
	const owner = 4711
	if err := os.Chown(path, owner, -1); err != nil {
		t.Skip("needs root, to give a file to another user")
	}
	for euid, want := range map[int]bool{0: false, owner: false, 1: true} {
		r, err := Inspect(path, "none", euid)
		must.OK(t, err)
		got := [2]bool{slices.Contains(r.Notes, "only uid 4711 or root can consume it"), strings.Contains(strings.Join(r.Advice, ""), "The ring belongs to uid 4711.")}
		if got != [2]bool{want, want} {
			t.Errorf("uid %d: notes %q, advice %q", euid, r.Notes, r.Advice)
		}
	}
}
