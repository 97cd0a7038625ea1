// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/events"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// readFlags is the command line of nixlring read.
type readFlags struct {
	follow     bool
	consume    bool
	count      uint64
	categories []string
	names      []string
	compatible string // --telemetry_path
	output     *output
}

func newRead(w world) *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read PATH...",
		Short: "Print the events of rings",
		Long: `Read prints the events in rings, oldest first, as NIXL's own readers do. It
supports all layouts.

By default, read observes: the events stay in the ring, so it can run beside a
Collector. With --consume, it removes the events, as NIXL's readers do, even
those that a filter excludes. This requires the ring's owner or root, and locks
the ring against other consumers of this project.

With --follow, read continues until interrupted, even if an agent restarts. An
observer misses events that a consumer takes and the agent overwrites between
two polls, and can't always detect this. A full ring without a consumer stops
changing.

Only layout v1 has timestamps, printed in local time. For other layouts, the
time is when the event was read. Events go to standard output, everything else
to standard error. The formats are:

  text  what NIXL's readers print, six lines per event
  json  one object per line, with the time in microseconds since the Unix epoch
        and the category of the metrics
  csv   the columns timestamp_us, category (a number), event_name and value; one
        ring only`,
		Example: `  nixlring read /tmp/agent
  nixlring read /tmp/agent --follow --category transfer,error
  nixlring read /run/nixl/* --name 'agent_err_*' --output json
  nixlring read /tmp/agent --consume --output csv >events.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.compatible != "" {
				args = append(args, f.compatible)
			}
			return f.run(cmd.Context(), w, args)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *readFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&f.follow, "follow", "f", false, "continue with new events until interrupted")
	flags.Uint64VarP(&f.count, "count", "c", 0, "stop after `NUMBER` events; 0 for no limit")
	flags.StringSliceVar(&f.categories, "category", nil, "print only events of these `CATEGORIES`, such as transfer,error")
	flags.StringSliceVar(&f.names, "name", nil, "print only events with these `NAMES`; * and ? are wildcards")
	flags.BoolVar(&f.consume, "consume", false, "remove the events from the rings")
	flags.StringVar(&f.compatible, "telemetry_path", "", "another `PATH`; a flag of NIXL's Python reader")
	if err := flags.MarkHidden("telemetry_path"); err != nil {
		panic(err) // the flag doesn't exist
	}
	f.output = addOutput(cmd, events.Formats()...)
	complete(cmd, "category", events.Categories())
}

func (f *readFlags) run(ctx context.Context, w world, paths []string) error {
	cfg := events.Config{
		Paths: paths, Mode: ringbuf.Observe, Follow: f.follow, Count: f.count, Format: f.output.value,
		Out: w.out, Notes: w.err, Now: w.now,
		Explain: func(path string, err error) error { return explainRing(w.proc, path, err) },
	}
	if f.consume {
		cfg.Mode = ringbuf.Consume
	}
	var err error
	if cfg.Filter, err = events.NewFilter(f.categories, f.names); err != nil {
		return usageError{err}
	}
	switch {
	case len(paths) == 0:
		return usagef("missing PATH of a ring; nixlring ls lists rings")
	case f.output.value == "csv" && len(paths) > 1:
		return usagef("--output csv supports one ring only, because its rows don't contain the path; use --output json")
	}
	return events.Print(ctx, cfg)
}

// explainRing adds advice to an error of opening a ring.
func explainRing(proc, path string, err error) error {
	switch info, _ := os.Stat(path); {
	case info != nil && info.IsDir():
		return fmt.Errorf("%s: is a directory; nixlring ls lists its rings", units.Printable(path))
	case recording.Is(path):
		return isRecording(path)
	case errors.Is(err, ringbuf.ErrLocked):
		if users := ringfile.FindUsers(proc, path); users.Consumer != nil {
			return fmt.Errorf("open ring %s: %v consumes it; stop this process, or read without --consume", path, users.Consumer)
		}
	}
	return patherr.Explain(patherr.Ring, path, err)
}
