// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// writeInvalidFiles creates and removes files that aren't rings, and writes to a ring at random, until
// over is closed.
func writeInvalidFiles(t *testing.T, rng *rand.Rand, rings string, over <-chan struct{}) {
	t.Helper()
	const names = 8
	path := func(n int) string { return filepath.Join(rings, fmt.Sprintf("invalid-%d", n)) }
	defer func() {
		for i := range names {
			must.OK(t, os.RemoveAll(path(i)))
		}
	}()
	for {
		select {
		case <-over:
			return
		case <-time.After(upTo(rng, 100*time.Millisecond)):
		}
		at := path(rng.IntN(names))
		must.OK(t, os.RemoveAll(at))
		if rng.IntN(2) == 0 {
			pick(rng, invalid...)(t, at)
			continue
		}
		w, err := ringbuf.Create(at, pick(rng, ringbuf.Layouts()...), 64)
		must.OK(t, err)
		for range rng.IntN(20) {
			scribble(t, rng, at)
			pass(t, upTo(rng, 10*time.Millisecond))
		}
		must.OK(t, w.Close())
	}
}

// invalid are kinds of files in a telemetry directory that aren't valid rings.
var invalid = []func(t *testing.T, path string){
	func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("dear diary "), 500)) },
	func(t *testing.T, path string) { ringtest.Make(t, path, ringtest.NewHeader(4, 1024), 100) },
	func(t *testing.T, path string) { ringtest.Make(t, path, ringtest.NewHeader(6, 64), 64*16) },
	func(t *testing.T, path string) { must.OK(t, syscall.Mkfifo(path, 0o600)) },
	func(t *testing.T, path string) { must.OK(t, os.Symlink("agent-0", path)) },
	func(t *testing.T, path string) { write(t, path, make([]byte, 40+64*16)) },
	func(t *testing.T, path string) { must.OK(t, os.Mkdir(path, 0o700)) },
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, text, 0o600))
}

// scribble writes to a file at random, or changes its size.
func scribble(t *testing.T, rng *rand.Rand, path string) {
	t.Helper()
	if rng.IntN(8) == 0 {
		must.OK(t, os.Truncate(path, rng.Int64N(4096)))
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte{byte(rng.IntN(80))}, rng.Int64N(600))
	must.OK(t, err)
}
