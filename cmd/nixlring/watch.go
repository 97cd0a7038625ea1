// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/engine"
)

// watchFlags selects the agents that a command watches. The commands that watch agents have
// them in common.
type watchFlags struct {
	dir         string // empty to discover the agents
	recorded    bool   // dir is a recording
	kubelet     string // the kubelet's directory of pods, if agents are discovered in it
	include     []string
	runInterval time.Duration
}

// envKubelet is the default of --kubelet. The chart sets it, so that nixlring needs no argument in its pods.
const envKubelet = "NIXLRING_KUBELET"

// sourceHelp explains where the commands that watch agents find them.
const sourceHelp = `Without DIR, %s reads the rings in NIXL_TELEMETRY_DIR, if it is set. Otherwise,
it discovers the agents of all processes, in any container; those of other users
require root. With --kubelet, it discovers those in the volumes of all pods. It
doesn't consume events, so it can run beside a Collector. RECORDING is a file of
nixlring record, or - for standard input.`

// register adds the flags to a command, whose action on the agents is verb.
func (f *watchFlags) register(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubelet, "kubelet", "", "discover the agents in the volumes of pods below `PATH` (default "+envKubelet+")")
	flags.Lookup("kubelet").NoOptDefVal = engine.DefaultKubeletPods
	addInclude(flags, &f.include, verb)
}

// addInclude adds the flag that selects agents by name.
func addInclude(flags *pflag.FlagSet, include *[]string, verb string) {
	flags.StringSliceVar(include, "include", nil, "`PATTERN` of the agents to "+verb+", such as 'prefill-*'; '**' includes subdirectories")
}

// checkInclude rejects invalid patterns.
func checkInclude(include []string) error {
	for _, pattern := range include {
		if !doublestar.ValidatePattern(pattern) {
			return usagef("--include %q: not a valid pattern", pattern)
		}
	}
	return nil
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
func (f *watchFlags) complete(_ *cobra.Command, w world, args []string) (err error) {
	switch {
	case len(args) > 0 && f.kubelet == engine.DefaultKubeletPods: // --kubelet PATH, which pflag takes for a flag and an argument
		f.kubelet = args[0]
	case len(args) > 0 && f.kubelet != "":
		return usagef("--kubelet discovers agents; omit %s", args[0])
	case len(args) > 0:
		f.dir, f.recorded = args[0], args[0] == fleet.Stdin || recording.Is(args[0])
	case f.kubelet == "":
		f.kubelet = w.variable(envKubelet)
		f.dir = w.ringDir()
	}
	switch {
	case f.dir != "":
		f.kubelet = ""
	case f.kubelet != "":
		if f.kubelet, err = filepath.Abs(f.kubelet); err != nil {
			return err
		}
	}
	if f.runInterval, err = w.env.RunInterval(); err != nil {
		return err
	}
	return checkInclude(f.include)
}

// open returns the source of frames: an interval apart and, of a recording, as they were recorded if live is set. All transfers
// that take longer than slow are in frames.
func (f *watchFlags) open(w world, interval time.Duration, live bool, slow time.Duration) (fleet.Source, error) {
	cfg := fleet.Config{
		Directory: f.dir, Kubelet: f.kubelet, Include: f.include, RunInterval: f.runInterval, Proc: w.proc, Now: w.now,
		Interval: interval, Slow: slow,
	}
	if f.recorded {
		return fleet.OpenRecording(f.dir, w.in, cfg, live)
	}
	if f.dir != "" {
		if err := patherr.Directory(patherr.Watched, f.dir); err != nil {
			return nil, err
		}
	}
	source, err := fleet.NewRings(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return source, nil
}
