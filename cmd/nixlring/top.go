// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/screen"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// topFlags is the command line of nixlring top.
type topFlags struct {
	watchFlags
	window time.Duration
	length time.Duration
	sort   string
	once   bool
	output *output
}

func newTop(w world) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [DIR|RECORDING]",
		Short: "Show what agents are doing, live",
		Long: fmt.Sprintf(`Top shows a line for each agent. Agents with problems come first.

`+sourceHelp+`

`+backendHelp+`
It starts with the past that --for selects, and then continues live unless --at is
set.

Rates and quantiles cover the last --window. AGENT starts with the agent's pod and
container, if it has any. The other columns are:

  %s

Beside a Collector, totals lack the events that it took before top started, and top
misses events that it takes and the agent overwrites between two readings. A full ring
without a consumer stops changing.

With --output, or if standard output isn't a terminal, top prints one measurement; for
a recording, the one at its end. In JSON, this is two frames, one window apart, one per
line. A frame has the counters and histograms of all agents; what they did in the
window is the difference.

To turn off colors, set NO_COLOR=1.`, "top", "top", strings.ReplaceAll(screen.Help, "\n", "\n  ")),
		Example: `  nixlring top
  nixlring top /run/nixl --include 'prefill-*' --sort p99
  nixlring top --window 1s --output json
  kubectl -n nixl get pods -o wide --field-selector spec.nodeName=HOST
  kubectl -n nixl exec -it POD -- nixlring top`,
		Args: takes,
		RunE: watching(&f, w),
	}
	f.register(cmd)
	return cmd
}

func (f *topFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVarP(&f.window, "window", "w", 5*time.Second, "time over which rates and quantiles are measured (default 5s, or 3m with --prometheus)")
	flags.Lookup("window").DefValue = "0s" // the text has both
	f.watchFlags.register(cmd, "show")
	f.registerBackend(flags)
	f.backend.Shown = true
	flags.DurationVar(&f.length, "for", liveLength, "with --prometheus, how much of the past to start with")
	flags.StringVarP(&f.sort, "sort", "s", screen.ByProblems, "sort by `COLUMN`, such as p99")
	f.output = addOutput(cmd, "text", "json")
	complete(cmd, "sort", screen.Keys())
}

// complete sets the values that come from the command line or the environment, and rejects
// invalid flags.
func (f *topFlags) complete(cmd *cobra.Command, w world, args []string) error {
	const shortest = 10 * time.Millisecond
	f.once = cmd.Flags().Changed("output") || !isTerminal(w.out)
	if err := f.watchFlags.complete(cmd, w, args); err != nil {
		return err
	}
	if err := f.completeBackend(cmd, args, &f.length, liveLength, "for"); err != nil {
		return err
	}
	if f.backend.URL != "" && !cmd.Flags().Changed("window") {
		f.window = backendWindow
	}
	if f.window < shortest {
		return usagef("--window %v: must be %v or more", f.window, shortest)
	}
	if slices.Contains(screen.Keys(), f.sort) {
		return nil
	}
	return usagef("--sort %s: must be one of %s", f.sort, strings.Join(screen.Keys(), ", "))
}

func (f *topFlags) run(ctx context.Context, w world) (err error) {
	interval := time.Second
	if f.once {
		interval = f.window
	}
	source, err := f.open(w, interval, !f.once, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if f.once {
		return f.measure(ctx, w, source)
	}
	return f.show(ctx, w, source)
}

// empty explains why no agent is shown.
func (f *topFlags) empty(w world, name string) string {
	text := fmt.Sprintf("no agent in %s is running\n", name)
	switch {
	case f.include != nil:
		return fmt.Sprintf("no agent in %s matches --include %s\n", name, strings.Join(f.include, ","))
	case f.dir == "":
		return text + "Agents need " + process.EnvEnable + "=y; see docs/deploy.md for the other variables.\n"
	}
	return text + w.howToStart(f.dir)
}

// show runs the screen until the user quits, or ctx is done.
func (f *topFlags) show(ctx context.Context, w world, source fleet.Source, opts ...tea.ProgramOption) error {
	const framesPerSecond = 30
	watching, stop := context.WithCancel(ctx)
	var next sync.Mutex // held while a frame is taken
	defer next.Lock()
	defer stop()
	model := screen.New(screen.Config{
		Name: source.Name(), Window: f.window, Sort: f.sort,
		Next: func() (*diagnose.Frame, error) {
			next.Lock()
			defer next.Unlock()
			return source.Next(watching)
		},
		Empty: f.empty(w, source.Name()),
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
