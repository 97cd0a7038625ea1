// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
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
	dir         string              // empty to discover the agents
	recorded    bool                // dir is a recording
	kubelet     string              // the kubelet's directory of pods, if agents are discovered in it
	backend     fleet.BackendConfig // its URL is empty for other sources
	include     []string
	runInterval time.Duration
}

// past reports whether the source is of the past, and ends: a recording, or a backend without more.
func (f *watchFlags) past() bool { return f.recorded || f.backend.URL != "" }

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

// backendHelp explains where the metrics of a whole cluster come from.
const backendHelp = `With --prometheus, %s reads the metrics that Collectors with the receiver nixl_shm
have sent to Prometheus, VictoriaMetrics, Mimir, Thanos or another backend with the
same HTTP API: of all hosts, and of the past. --http.config.file has the credentials
and TLS settings, as that of promtool does.`

// A backend has few samples, so that speeds are those of some minutes, as those of the alerts are.
const liveLength, backendWindow = 30 * time.Minute, 3 * time.Minute

// registerBackend adds the flags of a backend. The time that it reads has another meaning for each command.
func (f *watchFlags) registerBackend(flags *pflag.FlagSet) {
	flags.StringVar(&f.backend.URL, "prometheus", "", "read the metrics of agents from the backend at `URL`")
	flags.StringVar(&f.backend.HTTPConfig, "http.config.file", "", "`FILE` with the HTTP client settings for --prometheus")
	flags.StringVar(&f.backend.Job, "job", "", "read only the agents with this `SERVICE` name (service.name), with --prometheus")
	flags.Var((*instant)(&f.backend.End), "at", "read the past up to `TIME` (RFC 3339, or seconds since 1970), with --prometheus (default now)")
}

// instant is a point in time, as promtool reads it.
type instant time.Time

func (t *instant) Type() string { return "time" }

func (t *instant) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}

func (t *instant) Set(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if seconds, errNumber := strconv.ParseInt(text, 10, 64); errNumber == nil {
		at, err = time.Unix(seconds, 0), nil
	}
	if err != nil {
		return errors.New("must be a time such as 2026-01-02T15:04:05Z, or seconds since 1970")
	}
	*t = instant(at)
	return nil
}

// completeBackend rejects invalid combinations of flags, given the time that is read unless --for says another one, and the flags of
// the command that only a backend has.
func (f *watchFlags) completeBackend(cmd *cobra.Command, args []string, length *time.Duration, usual time.Duration, only ...string) error {
	const shortest, longest = 5 * time.Minute, 6 * time.Hour
	flags := cmd.Flags()
	if f.backend.URL == "" {
		for _, name := range append(only, "http.config.file", "job", "at") {
			if flags.Changed(name) {
				return usagef("--%s requires --prometheus", name)
			}
		}
		return nil
	}
	if len(args) > 0 {
		return usagef("--prometheus reads the agents of a backend; omit %s", args[0])
	}
	if flags.Changed("kubelet") {
		return usagef("--prometheus reads the agents of a backend; omit --kubelet")
	}
	if !flags.Changed("for") {
		*length = usual
	}
	if *length < shortest || *length > longest {
		return usagef("--for %v: must be from 5m to 6h with --prometheus; --at looks further back", *length)
	}
	f.backend.Length, f.dir, f.kubelet = *length, "", ""
	return nil
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

// open returns the source of frames: an interval apart and, of a recording, as they were recorded if live is set. A backend goes on
// after the past if live is set. All transfers
// that take longer than slow are in frames.
func (f *watchFlags) open(w world, interval time.Duration, live bool, slow time.Duration) (fleet.Source, error) {
	cfg := fleet.Config{
		Directory: f.dir, Kubelet: f.kubelet, Include: f.include, RunInterval: f.runInterval, Proc: w.proc, Now: w.now,
		Interval: interval, Slow: slow,
	}
	switch {
	case f.recorded:
		return fleet.OpenRecording(f.dir, w.in, cfg, live)
	case f.backend.URL != "":
		f.backend.Live = live && f.backend.End.IsZero()
		source, err := fleet.OpenBackend(cfg, f.backend)
		if err != nil {
			return nil, usageError{err}
		}
		return source, nil
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
