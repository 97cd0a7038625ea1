// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestPeekReturnsTheHeadersOfRealRings(t *testing.T) {
	cases := ringtest.Cases(t)
	if len(cases) != 49 {
		t.Errorf("%d rings, want 49: 15 for each of three releases and 4 of agents", len(cases))
	}
	for _, c := range cases {
		h, err := ringbuf.Peek(c.File)
		want := ringbuf.Header{
			WritePos: c.WritePos, ReadPos: c.ReadPos, Version: c.Version,
			ExpectedVersion: c.ExpectedVersion, Capacity: c.Capacity, Mask: c.Mask,
		}
		if diff := cmp.Diff(want, h); diff != "" || (err == nil) != c.Readable() {
			t.Errorf("%s: %v, %s", c.Name, err, diff)
		}
	}
}

func TestPeekRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	must.OK(t, os.WriteFile(short, make([]byte, 39), 0o600))
	for path, want := range map[string]error{
		short: ringbuf.ErrNotRing, dir: ringbuf.ErrNotRegular, filepath.Join(dir, "missing"): fs.ErrNotExist,
	} {
		if h, err := ringbuf.Peek(path); !errors.Is(err, want) || h != (ringbuf.Header{}) {
			t.Errorf("%s: %v, %+v", path, err, h)
		}
	}
}
