// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Nixlring is the operator's tool for the telemetry rings of NIXL agents.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // who asks a second time doesn't want to wait
	code := run(ctx, world{out: os.Stdout, err: os.Stderr, env: os.LookupEnv, now: time.Now, proc: "/proc"}, os.Args[1:])
	stop()
	os.Exit(code)
}

// world is what commands see of their surroundings.
type world struct {
	out, err io.Writer
	env      nixlenv.Env
	now      func() time.Time
	proc     string // where the kernel tells of processes
}

// run is the program, as a test can call it.
func run(ctx context.Context, w world, args []string) int {
	root := newRoot(w)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for os.Args
	cmd, err := root.ExecuteContextC(ctx)
	return exit(w.err, cmd, err)
}
