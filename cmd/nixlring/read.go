// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/show"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// readFlags is the command line of nixlring read.
type readFlags struct {
	follow     bool
	consume    bool
	count      uint64
	interval   time.Duration
	categories []string
	names      []string
	quiet      bool
	compatible string // --telemetry_path
	output     *output
}

func newRead(w world) *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read PATH...",
		Short: "Print the events of rings",
		Long: `Read prints the events that stand in rings, oldest first, as NIXL's own readers
do, for rings of every layout.

It looks only: the events stay in the ring, and a Collector beside it gets them
all the same. With --consume it takes them out, as NIXL's readers do, which
takes the ring's owner or root; other consumers of this project are kept out
meanwhile. Events that a filter holds back are taken out too.

With --follow it goes on until Ctrl-C, over restarts of the agent. An observer
doesn't see what a consumer takes and the agent writes over between two looks
(--interval), and can't always know. A ring that is full and that nobody
consumes stands still.

A ring that can't be read is told on the standard error, and the others are
printed all the same; the exit code is 1 then.

Rings of layout v1 have the time of each event, in local time here. Later ones
have none: the time printed is that of reading.

Events go to the standard output, all else to the standard error. Text is what
NIXL's readers print, six lines per event. Line is one line with time, category,
name and value, and the ring if there are several. JSON is a line per event, with
the time in microseconds since the epoch. CSV has the columns timestamp_us,
category (its number), event_name and value; it is of one ring. Categories are
those of the metrics in lines and JSON, and NIXL's in the rest.

` + exitCodes,
		Example: `  nixlring read /tmp/agent
  nixlring read /tmp/agent --follow --category transfer,error --output line
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
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what agents write, until Ctrl-C")
	flags.Uint64VarP(&f.count, "count", "c", 0, "stop after `NUMBER` events; 0 for no limit")
	flags.StringSliceVar(&f.categories, "category", nil, "only events of `CATEGORIES`, like transfer,error")
	flags.StringSliceVar(&f.names, "name", nil, "only events whose name is one of `NAMES`; * and ? stand for any characters")
	flags.BoolVar(&f.consume, "consume", false, "take the events out of the rings")
	flags.DurationVar(&f.interval, "interval", 50*time.Millisecond, "time between two looks of --follow")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print events only")
	flags.StringVar(&f.compatible, "telemetry_path", "", "another `PATH`, as NIXL's Python reader has it")
	if err := flags.MarkHidden("telemetry_path"); err != nil {
		panic(err) // the flag doesn't exist: a mistake in this program
	}
	f.output = addOutput(cmd, render.Formats()...)
	complete(cmd, "category", render.Categories())
}

func (f *readFlags) run(ctx context.Context, w world, paths []string) error {
	cfg := show.Config{
		Paths: paths, Mode: ringbuf.Observe, Follow: f.follow, Interval: f.interval, Count: f.count,
		Headings: f.output.value == "text", Out: w.out, Notes: notes(w, f.quiet), Now: w.now,
		Warn: func(err error) { complain(w.err, err) },
	}
	if f.consume {
		cfg.Mode = ringbuf.Consume
	}
	if f.output.value == "csv" {
		cfg.Header = render.CSVHeader
	}
	var err error
	if cfg.Filter, err = render.NewFilter(f.categories, f.names); err != nil {
		return usageError{err}
	}
	if cfg.Format, err = render.ParseFormat(f.output.value); err != nil {
		return usageError{err}
	}
	if f.output.value == "line" && len(paths) > 1 {
		cfg.Format = render.AppendRingLine
	}
	switch {
	case len(paths) == 0:
		return usagef("the path of a ring is needed; nixlring ls lists them")
	case f.interval <= 0:
		return usagef("--interval %v: it is more than 0", f.interval)
	case f.output.value == "csv" && len(paths) > 1:
		return usagef("--output csv is of one ring, as its rows don't tell rings apart; name one, or take --output json")
	}
	return show.New(cfg).Run(ctx)
}
