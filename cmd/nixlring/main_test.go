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
