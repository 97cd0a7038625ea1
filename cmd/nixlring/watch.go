// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/live"
)

// watchFlags selects the agents that a command watches. The commands that watch agents have
// them in common.
type watchFlags struct {
	dir         string
	explicit    bool // dir is an argument
	recorded    bool // dir is a recording
	processes   bool
	socket      string // empty to read rings
	include     []string
	recursive   bool
	runInterval time.Duration
}

// sourceHelp explains where the commands that watch agents find them.
const sourceHelp = `Without DIR, and if a Collector on this host serves its socket, %[1]s shows what that
Collector counts: all agents that it discovers, exactly. Otherwise, it reads the rings
in DIR, by default NIXL_TELEMETRY_DIR, or with --processes those of all processes of
the host, which requires root. It doesn't consume events, so it can run beside a
Collector.`

// recordingHelp explains that some of them also read recordings.
const recordingHelp = `Instead of DIR, a recording of nixlring record can be specified.`

// register adds the flags to a command, whose action on the agents is verb.
func (f *watchFlags) register(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&f.socket, "socket", "", "`PATH` of the socket of a Collector's receiver nixl_shm (default "+live.DefaultSocket+", if it is served)")
	flags.BoolVar(&f.processes, "processes", false, "read the rings of all processes of the host")
	flags.StringSliceVar(&f.include, "include", nil, "`PATTERN` of the agents to "+verb+", such as 'prefill-*'")
	flags.BoolVarP(&f.recursive, "recursive", "r", false, recursiveUsage)
	flags.DurationVar(&f.runInterval, "run-interval", 0, "the agents' time between two flushes (default NIXL_TELEMETRY_RUN_INTERVAL, else 100ms)")
}

// watching returns the function of a command with watchFlags.
func watching(f interface {
	complete(cmd *cobra.Command, w world, args []string) error
	run(ctx context.Context, w world) error
}, w world,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f.complete(cmd, w, args); err != nil {
			return err
		}
		return f.run(cmd.Context(), w)
	}
}

// complete sets the values that come from the arguments or the environment, and rejects
// invalid flags.
func (f *watchFlags) complete(cmd *cobra.Command, w world, args []string) (err error) {
	f.dir = w.env.Dir()
	if len(args) > 0 {
		f.dir, f.explicit, f.recorded = args[0], true, recorder.Is(args[0])
	}
	switch {
	case len(args) > 0 && f.processes:
		return usagef("--processes reads rings wherever they are; omit %s", args[0])
	case len(args) > 0 && f.socket != "":
		return usagef("--socket shows what a Collector counts; omit %s", args[0])
	case f.processes && f.socket != "":
		return usagef("--processes and --socket can't be combined")
	}
	if !cmd.Flags().Changed("run-interval") {
		if f.runInterval, err = w.env.RunInterval(); err != nil {
			return err
		}
	}
	for _, pattern := range f.include {
		if !doublestar.ValidatePattern(pattern) {
			return usagef("--include %q: not a valid pattern", pattern)
		}
	}
	if f.runInterval < time.Millisecond {
		return usagef("--run-interval %v: must be 1ms or more", f.runInterval)
	}
	return nil
}

// start starts watching. Without a directory, it returns an error, unless the directory
// may be created later.
func (f *watchFlags) start(ctx context.Context, w world, later bool) (top.Source, error) {
	source, err := f.source(ctx, w, later)
	if err != nil {
		return nil, err
	}
	return source, source.Start()
}

func (f *watchFlags) source(ctx context.Context, w world, later bool) (source top.Source, err error) {
	if f.recorded {
		return f.openRecording(w.now)
	}
	if f.findSocket(ctx, w) {
		return top.NewLive(top.LiveConfig{Socket: f.socket, Include: f.include, Recursive: f.recursive, Proc: w.proc}), nil
	}
	if err := f.checkDir(); err != nil && (!later || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	if source, err = top.NewRings(f.rings(w)); err != nil {
		return nil, usageError{err}
	}
	return source, nil
}

// openRecording opens the recording, which is played by a clock.
func (f *watchFlags) openRecording(now func() time.Time) (*top.Recording, error) {
	return top.OpenRecording(top.RecordingConfig{Path: f.dir, Include: f.include, Recursive: f.recursive, Now: now})
}

// rings returns which rings to read.
func (f *watchFlags) rings(w world) top.RingsConfig {
	return top.RingsConfig{
		Directory: f.dir, Processes: f.processes, Include: f.include, Recursive: f.recursive, RunInterval: f.runInterval, Proc: w.proc,
	}
}

// findSocket reports whether to show what a Collector counts, and sets the socket.
func (f *watchFlags) findSocket(ctx context.Context, w world) bool {
	if f.socket != "" {
		return true
	}
	if f.explicit || f.processes || w.socket == "" {
		return false
	}
	client, err := live.Dial(ctx, w.socket)
	switch {
	case err == nil:
		_ = client.Close()
		f.socket = w.socket
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // no Collector is running
		return false
	default:
		fmt.Fprintf(w.err, "%v\nReading the rings in %s instead.\n", patherr.Explain(patherr.Socket, w.socket, err), render.Printable(f.dir))
		return false
	}
}

// checkDir returns an error unless the directory of the rings exists, if one is read.
func (f *watchFlags) checkDir() error {
	if f.processes {
		return nil
	}
	return patherr.Directory(patherr.Rings, f.dir)
}

// where returns where agents are watched, as part of a sentence.
func (f *watchFlags) where(name string) string {
	if f.socket != "" {
		return "on " + render.Printable(name)
	}
	return "in " + render.Printable(name)
}
