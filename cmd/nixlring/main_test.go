// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

var update = flag.Bool("update", false, "update the golden files")

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// nixlring runs the program with environment variables.
func nixlring(ctx context.Context, env map[string]string, args ...string) result {
	return runWith(ctx, world{now: time.Now, proc: "/proc", env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}, args...)
}

// nixlringAt runs the program with a fixed time.
func nixlringAt(ctx context.Context, now time.Time, args ...string) result {
	return runWith(ctx, world{now: func() time.Time { return now }, proc: "/proc"}, args...)
}

func runWith(ctx context.Context, w world, args ...string) result {
	var out, errs messages
	w.out, w.err = &out, &errs
	code := run(ctx, w, args)
	return result{code, out.String(), errs.String()}
}

// messages are what a program prints, from any goroutine, as to [os.Stderr].
type messages struct {
	mu   sync.Mutex
	text strings.Builder
}

func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(p)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// rings creates a directory with two rings, the ring of an agent that failed to start, and a
// text file. It is also the working directory of the test.
func rings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, layout := range map[string]ringbuf.Layout{"decode": ringbuf.V1, "pre\nfill": ringbuf.V4} {
		w, err := ringbuf.Create(name, layout, 16)
		must.OK(t, err)
		for range 6 {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		}
		must.OK(t, w.Close())
	}
	ringtest.Make(t, "failed", ringtest.Header{Capacity: 12, Mask: 11}, 12*16)
	must.OK(t, os.WriteFile("letter", []byte("Dear Sir or Madam, this is not a ring but a letter."), 0o644))
	hours := time.Now().Add(-3*time.Hour - 30*time.Minute)
	for _, name := range []string{"decode", "pre\nfill", "failed", "letter"} {
		must.OK(t, os.Chtimes(name, hours, hours))
	}
	return dir
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return b
}

// golden compares text with a golden file or, with -update, writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.OK(t, os.MkdirAll("testdata", 0o755))
		must.OK(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must.OK(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (to update it, run go test -update):\n%s", path, diff)
	}
}
