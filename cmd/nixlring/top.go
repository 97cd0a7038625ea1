// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top/screen"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/walk"
	"github.com/nixl-otel/nixl-otel/internal/store"
)

// topFlags is the command line of nixlring top.
type topFlags struct {
	dir         string
	include     []string
	recursive   bool
	interval    time.Duration
	window      time.Duration
	runInterval time.Duration
	sort        string
	once        bool
	output      *output

	stores bool // the directory contained a store when top started
}

func newTop(w world) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [DIR]",
		Short: "Show what agents are doing, live",
		Long: `Top shows a line for each agent: bytes and transfers per second, transfer and post
times, throughput of single transfers, errors, registered memory, the fill of its
ring, and problems, such as lost events. Press enter for the page of an agent,
which has histories, distributions and the slowest transfers of the last minute.
Press ? for the keys and the meaning of the columns.

Top doesn't consume events, so it can run beside a Collector. Therefore it can't
show everything:

  - Totals lack what a consumer took before top started, such as memory
    registrations, and rates lack what was in a ring by then.
  - Top reads twice per run interval. It misses events that a consumer takes and
    the agent overwrites in between.
  - A full ring without a consumer doesn't change anymore, so top doesn't see what
    its agent does.

Top doesn't show the stores of NIXL's prometheus_mp exporter; use nixlring ls.

ALIVE shows whether the agent is running, whether or not a consumer has its ring
open. It changes within seconds of the agent's exit. ? means that finding out
requires root, or isn't possible in a container.

An agent is a straggler, as for the alert NIXLStraggler, if the median throughput
of its transfers is more than 3 × 1.4826 × the median absolute deviation below
the median of all agents in the directory, and below half of it, and its mean
throughput is below half of theirs. This requires at least four agents with ten
transfers in the window.

Rates and quantiles cover the last --window. Quantiles are interpolated
within the buckets of a histogram, which has 8 to 10 buckets per decade.

The columns to --sort by are:

` + indented(sortKeys()) + `
With --once, top waits for one window, prints one measurement and exits. Use it
in scripts, or without a terminal.

To turn off colors, set NO_COLOR=1.

` + exitCodes,
		Example: `  nixlring top
  nixlring top /run/nixl --include 'prefill-*' --sort p99
  nixlring top --once --window 1s --output json`,
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.dir = w.env.Dir()
			if len(args) > 0 {
				f.dir = args[0]
			}
			if err := f.complete(cmd, w); err != nil {
				return err
			}
			return f.run(cmd.Context(), w)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *topFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVarP(&f.interval, "interval", "i", time.Second, "time between updates of the screen")
	flags.DurationVarP(&f.window, "window", "w", top.DefaultWindow, "time over which rates and quantiles are measured")
	flags.StringSliceVar(&f.include, "include", nil, "`PATTERN` of the agents to show, such as 'prefill-*'")
	flags.BoolVarP(&f.recursive, "recursive", "r", false, recursiveUsage)
	flags.StringVarP(&f.sort, "sort", "s", string(top.ByName), "sort by `COLUMN`; see above")
	flags.DurationVar(&f.runInterval, "run-interval", 0, "the agents' time between two flushes (default NIXL_TELEMETRY_RUN_INTERVAL, else 100ms)")
	flags.BoolVar(&f.once, "once", false, "print one measurement and exit")
	f.output = addOutput(cmd, "text", "json", "csv")
	complete(cmd, "sort", sortKeys())
}

// complete sets the values that come from the environment, and rejects invalid flags.
func (f *topFlags) complete(cmd *cobra.Command, w world) (err error) {
	const shortest = 10 * time.Millisecond
	f.once = f.once || cmd.Flags().Changed("output") // the screen has no output format
	if !cmd.Flags().Changed("run-interval") {
		if f.runInterval, err = w.env.RunInterval(); err != nil {
			return err
		}
	}
	switch {
	case f.interval < shortest:
		return usagef("--interval %v: must be %v or more", f.interval, shortest)
	case f.window < shortest:
		return usagef("--window %v: must be %v or more", f.window, shortest)
	case f.runInterval < time.Millisecond:
		return usagef("--run-interval %v: must be 1ms or more", f.runInterval)
	}
	if slices.Contains(sortKeys(), f.sort) {
		return nil
	}
	return usagef("--sort %s: must be one of %s", f.sort, strings.Join(sortKeys(), ", "))
}

func sortKeys() (names []string) {
	for _, k := range top.Keys() {
		names = append(names, string(k))
	}
	return names
}

func (f *topFlags) run(ctx context.Context, w world) (err error) {
	if !f.once && !isTerminal(w.out) {
		return usagef("standard output is not a terminal; use --once, or list the rings with nixlring ls")
	}
	// A missing directory may be created later.
	if err := place.Directory(place.Rings, f.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.stores = hasStore(f.dir)
	source, err := top.NewSource(top.SourceConfig{
		Directory: f.dir, Include: f.include, Recursive: f.recursive, RunInterval: f.runInterval, Proc: w.proc,
	})
	if err != nil {
		return usageError{err}
	}
	if err := source.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if f.once {
		return f.measure(ctx, w, source)
	}
	return f.show(ctx, w, source)
}

// empty explains why no agent is shown, given the number of agents that --include excludes.
func (f *topFlags) empty(excluded int) string {
	switch {
	case excluded > 0:
		return fmt.Sprintf("none of %s matches --include %s\n", plural(excluded, "agent", "agents"), strings.Join(f.include, ","))
	case f.stores:
		return fmt.Sprintf(`no ring in %s, but stores of NIXL's prometheus_mp exporter
Top shows rings only. To list the stores: nixlring ls %[1]s
To show one with its totals: nixlring inspect STORE
For rates, use the metrics of a Collector.
`, f.dir)
	default:
		return noRing([]string{f.dir})
	}
}

// hasStore reports whether a directory contains a store.
func hasStore(dir string) bool {
	for f, err := range walk.Dir(dir, false) {
		if err == nil && f.Type().IsRegular() && store.IsName(f.Name()) {
			return true
		}
	}
	return false
}

// show runs the screen until the user quits, or ctx is done.
func (f *topFlags) show(ctx context.Context, w world, source *top.Source, opts ...tea.ProgramOption) error {
	const framesPerSecond = 30
	model := screen.New(screen.Config{
		Directory: f.dir, Interval: f.interval, Window: f.window, Sort: top.Key(f.sort),
		Sample: source.Sample, Slowest: source.Slowest, Empty: f.empty,
	})
	opts = append([]tea.ProgramOption{
		tea.WithContext(ctx), tea.WithOutput(w.out), tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond),
	}, opts...)
	if v, _ := w.env("NO_COLOR"); v != "" { // any value; Bubble Tea supports only some values
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	}
	_, err := tea.NewProgram(model, opts...).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil // interrupted by the user
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}
