// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Nixlring is the operator's tool for the telemetry rings of NIXL agents.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, world{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, now: time.Now, proc: "/proc"}, os.Args[1:])
	stop()
	os.Exit(code)
}

// world is the environment of the commands.
type world struct {
	in   io.Reader
	out  io.Writer
	err  io.Writer // safe for concurrent use
	env  process.Env
	now  func() time.Time
	proc string // the mount point of procfs
	dir  string // the directory of rings if no variable names one; that of agents if empty
}

// envOutputPath names the directory of rings in some configurations. No release of NIXL reads it.
const envOutputPath = "NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH"

// ringDir returns the directory of the agents' rings if a variable names it, or else "".
func (w world) ringDir() string { return cmp.Or(w.env.SetDir(), w.variable(envOutputPath)) }

// variable returns an environment variable.
func (w world) variable(name string) string {
	if w.env == nil {
		return ""
	}
	value, _ := w.env(name)
	return value
}

// run runs the program and returns its exit code.
func run(ctx context.Context, w world, args []string) int {
	w.err = visible{w.err}
	root, started := newRoot(w), false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(append([]string{}, args...)) // never nil, which means os.Args
	cmd, err := root.ExecuteContextC(ctx)
	return exit(w.err, cmd, started, err)
}
