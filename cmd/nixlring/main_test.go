// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

var update = flag.Bool("update", false, "update the golden files")

// lookup returns an environment.
func lookup(env map[string]string) process.Env {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// nixlring runs the program with environment variables.
func nixlring(ctx context.Context, env map[string]string, args ...string) result {
	return runWith(ctx, world{now: time.Now, proc: "/proc", env: lookup(env)}, args...)
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
