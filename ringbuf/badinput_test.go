// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// In both modes, the error names the path, the reason and what to do, and the file
// stays unchanged.
func TestUnusableFilesAreRefusedUnchanged(t *testing.T) {
	header := func(change func(h *ringtest.Header)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			h := ringtest.NewHeader(4, 64)
			change(&h)
			ringtest.Make(t, path, h, 64*16)
		}
	}
	content := func(b string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			must.OK(t, os.WriteFile(path, []byte(b), 0o600))
		}
	}
	sized := func(version int32, capacity uint64, slots int) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			ringtest.Make(t, path, ringtest.NewHeader(version, capacity), slots)
		}
	}
	ring, otherHeader := newRing(t, V4, 64).Path(), make([]byte, 512+64*16)
	otherHeader[8], otherHeader[16], otherHeader[24] = 64, 5, 63
	made := func(create func(path string) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			must.OK(t, create(path))
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
		says []string
	}{
		{"an empty file", content(""), ErrNotReady, []string{"the file is empty"}},
		{"zeros", content(strings.Repeat("\x00", 1064)), ErrNotReady, []string{"version is still 0"}},
		{"a failed start", header(func(h *ringtest.Header) { h.Version, h.Capacity, h.Mask = 0, 12, 11 }), ErrNotReady, []string{"12 slots are not a power of two", "NIXL_TELEMETRY_BUFFER_SIZE"}},

		{"version 0 with events", header(func(h *ringtest.Header) { h.Version, h.WritePos = 0, 3 }), ErrNotReady, []string{"write position is 3"}},

		{"a text file", content(strings.Repeat("some text or other\n", 100)), ErrNotRing, nil},
		{"39 bytes", content(strings.Repeat("\x04", 39)), ErrNotRing, []string{"39 bytes"}},
		{"version 256 with a wrong mask", header(func(h *ringtest.Header) { h.Version, h.Mask = 256, 1 }), ErrNotRing, nil},

		{"version 5", header(func(h *ringtest.Header) { h.Version = 5 }), ErrUnknownVersion, []string{"version 5", "newer"}},
		{"version -1", header(func(h *ringtest.Header) { h.Version = -1 }), ErrUnknownVersion, []string{"version -1"}},
		{"version 5 with another header", content(string(otherHeader)), ErrUnknownVersion, []string{"version 5"}},

		{"cut short", sized(4, 64, 64*16-1), ErrInvalid, []string{"1063 bytes", "truncated?"}},
		{"header only", sized(4, 64, 0), ErrInvalid, []string{"40 bytes"}},
		{"another layout's size", sized(4, 64, 64*56), ErrInvalid, []string{"version 4"}},
		{"capacity 0", header(func(h *ringtest.Header) { h.Capacity = 0 }), ErrInvalid, []string{"NIXL_TELEMETRY_BUFFER_SIZE"}},
		{"capacity 1", sized(4, 1, 16), ErrInvalid, []string{"capacity of 1", "NIXL_TELEMETRY_BUFFER_SIZE"}},
		{"capacity 48", sized(4, 48, 48*16), ErrInvalid, []string{"48 is not a power of two"}},
		{"capacity 2^60 whose size wraps to nothing", sized(4, 1<<60, 0), ErrInvalid, []string{"limit"}},
		{"a mask of another ring", header(func(h *ringtest.Header) { h.Mask = 31 }), ErrInvalid, []string{"mask 0x1f"}},
		{"a write position beyond", header(func(h *ringtest.Header) { h.WritePos = 64 }), ErrInvalid, []string{"write position 64"}},
		{"a read position beyond", header(func(h *ringtest.Header) { h.ReadPos = 1 << 63 }), ErrInvalid, []string{"read position"}},

		{"a FIFO", made(func(path string) error { return unix.Mkfifo(path, 0o600) }), ErrNotRegular, []string{"FIFO"}},
		{"a link to a ring", made(func(path string) error { return os.Symlink(ring, path) }), ErrNotRegular, []string{"symbolic link"}},
		{"nothing", func(*testing.T, string) {}, fs.ErrNotExist, nil},
	} {
		for _, mode := range modes() {
			t.Run(c.name+"/"+mode.String(), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "agent")
				c.make(t, path)
				before := snapshot(t, path)
				r, err := OpenReader(path, mode)
				if err == nil {
					must.OK(t, r.Close())
					t.Fatal("it was opened")
				}
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				says(t, err, append(c.says, path)...)
				equal(t, "the file", snapshot(t, path), before)
			})
		}
	}
}

func TestInvalidPositionsAreDetectedWhileOpen(t *testing.T) {
	for _, mode := range modes() {
		for _, change := range []func(*ringtest.Header){
			func(h *ringtest.Header) { h.WritePos = 16 },
			func(h *ringtest.Header) { h.WritePos = 1<<64 - 1 },
			func(h *ringtest.Header) { h.ReadPos = 16 },
			func(h *ringtest.Header) { h.ReadPos = 1 << 32 },
		} {
			w := newRing(t, V4, 16)
			r := open(t, w.Path(), mode)
			push(t, w, 0, 5)
			ringtest.Edit(t, w.Path(), change)
			got, err := tryRead(r, 0)
			if !errors.Is(err, ErrInvalid) || len(got) != 0 {
				t.Errorf("%v: %d events, error %v", mode, len(got), err)
				continue
			}
			says(t, err, w.Path(), "beyond the last slot 15")
		}
	}
}

func TestLaterChangesOfMaskAndCapacityAreNotUsed(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Consume)
	push(t, w, 0, 5)
	ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.Mask = 1<<40 - 1 })
	equal(t, "events under another mask", read(t, r), samples(V4, 0, 5))
	ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.Capacity = 1 << 40 })
	if got, err := tryRead(r, 0); !errors.Is(err, ErrRestarted) || len(got) != 0 {
		t.Errorf("under another capacity: %d events, error %v", len(got), err)
	}
}

// snapshot describes a file: kind, mode, time and content.
func snapshot(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "nothing"
	}
	must.OK(t, err)
	s := info.Mode().String() + " " + info.ModTime().String()
	if info.Mode().IsRegular() {
		s += string(fileBytes(t, path))
	}
	return s
}
