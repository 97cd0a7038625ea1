// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

func TestCreateUsesAnAgentsFileMode(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	info, err := os.Stat(newRing(t, V4, 8).Path())
	must.OK(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("mode %v, want 0644 minus the umask", info.Mode())
	}
}

func TestCreateReusesAnExistingRing(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path string)
	}{
		{"another layout", func(path string) { push(t, create(t, path, V1, 64), 0, 50) }},
		{"a larger ring", func(path string) { push(t, create(t, path, V4, 4096), 0, 4000) }},
		{"a smaller ring", func(path string) { push(t, create(t, path, V4, 2), 0, 1) }},
		{"an empty file", func(path string) { must.OK(t, os.WriteFile(path, nil, 0o600)) }},
		{"a failed start", func(path string) { ringtest.Make(t, path, ringtest.Header{Capacity: 12, Mask: 11}, 12*16) }},
		{"an unknown version", func(path string) { ringtest.Make(t, path, ringtest.NewHeader(7, 16), 16*16) }},
		{"a truncated ring", func(path string) { ringtest.Make(t, path, ringtest.NewHeader(4, 16), 100) }},
	} {
		path := filepath.Join(t.TempDir(), "agent")
		c.make(path)
		w := create(t, path, V4, 16)
		push(t, w, 0, 15)
		equal(t, c.name, read(t, open(t, path, Consume)), samples(V4, 0, 15))
	}
}

func TestCreateRefusesOtherFilesAndInvalidCapacities(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	must.OK(t, os.WriteFile(text, []byte(strings.Repeat("some notes\n", 20)), 0o600))
	short := filepath.Join(dir, "short.txt")
	must.OK(t, os.WriteFile(short, []byte("notes\n"), 0o600))
	for _, c := range []struct {
		path     string
		layout   Layout
		capacity int
		want     error
		says     string
	}{
		{text, V4, 16, ErrNotRing, "no valid header"},
		{short, V4, 16, ErrNotRing, "6 bytes"},
		{dir, V4, 16, unix.EISDIR, ""},
		{filepath.Join(dir, "no", "agent"), V4, 16, os.ErrNotExist, ""},
		{filepath.Join(dir, "agent"), V4, 0, nil, "not a power of two"},
		{filepath.Join(dir, "agent"), V4, 1, nil, "not a power of two"},
		{filepath.Join(dir, "agent"), V4, -16, nil, "not a power of two"},
		{filepath.Join(dir, "agent"), V4, 48, nil, "not a power of two"},
		{filepath.Join(dir, "agent"), V4, MaxCapacity * 2, nil, "not a power of two"},
		{filepath.Join(dir, "agent"), 0, 16, nil, "unknown layout"},
		{filepath.Join(dir, "agent"), V4 + 1, 16, nil, "unknown layout"},
	} {
		before := snapshot(t, c.path)
		_, err := Create(c.path, c.layout, c.capacity)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s, layout %d, capacity %d: error %v, want %v", c.path, c.layout, c.capacity, err, c.want)
			continue
		}
		says(t, err, c.path, c.says)
		equal(t, c.path, snapshot(t, c.path), before)
	}
}

// Layouts with names can store types, but layouts with types can't store names.
func TestNamedEventsNeedALayoutWithNames(t *testing.T) {
	eachLayout(t, func(t *testing.T, l Layout) {
		w := newRing(t, l, 16)
		r := open(t, w.Path(), Consume)
		batch := []Event{NewEvent(TypeTxBytes, 1), NewNamedEvent(CategoryBackend, "ucx", 2), NewEvent(TypeErrBackend, 3)}
		n, err := w.PushBatch(batch)
		var names []string
		for _, e := range read(t, r) {
			names = append(names, e.EventName())
		}
		if l.Named() {
			if n != 3 || err != nil {
				t.Errorf("pushed %d: %v", n, err)
			}
			equal(t, "names", names, []string{"agent_tx_bytes", "ucx", "NIXL_ERR_BACKEND"})
			return
		}
		if n != 1 || !errors.Is(err, ErrNoType) {
			t.Errorf("pushed %d: %v, want %v", n, err, ErrNoType)
		} else {
			says(t, err, w.Path(), l.String())
		}
		equal(t, "names", names, []string{"agent_tx_bytes"})
	})
}

func TestClosedWriterReturnsErrClosedAndLeavesTheFile(t *testing.T) {
	w := newRing(t, V4, 8)
	push(t, w, 0, 3)
	before := fileBytes(t, w.Path())
	for range 2 {
		must.OK(t, w.Close())
	}
	_, lenErr := w.Len()
	for what, err := range map[string]error{"Push": w.Push(sample(V4, 1)), "Len": lenErr} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		} else {
			says(t, err, w.Path())
		}
	}
	if string(fileBytes(t, w.Path())) != string(before) {
		t.Error("Close changed the ring")
	}
}
