// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// recordFlags is the command line of nixlring record.
type recordFlags struct {
	duration time.Duration
	interval time.Duration
	include  []string
}

func newRecord(w world) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record FILE [DIR]",
		Short: "Record the rings of a directory to a file",
		Long: `Record observes all rings in a directory until interrupted, and writes the
rings, the starts of their agents, and all events with the time when they were
read to one compressed file. Nixlring top, why, web and slow show it, and
nixlring replay writes the rings again: for a bug report, or a demonstration
without a GPU.

The file has one JSON object per line, compressed with zstd, for other programs:

  zstdcat FILE | jq '.events[]? | select(.category == "error")'

It contains the names and attributes of agents and their events, but no
transferred data. If record crashes, the file is readable up to the last second.

Record doesn't consume events, so it can run beside a Collector. It misses
events that a consumer took before the recording started or within a moment
after a restart of the agent, and those that the agent overwrote between two
polls, which doesn't occur if --interval is well below the agents' run interval.
It can't always detect that. A full ring without a consumer stops changing.
Empty rings of agents that have exited aren't recorded.`,
		Example: `  nixlring record bug.jsonl.zst
  nixlring record busy.jsonl.zst /run/nixl --duration 1m`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := cmp.Or(w.ringDir(), w.env.Dir())
			if len(args) > 1 {
				dir = args[1]
			}
			switch {
			case f.duration < 0:
				return usagef("--duration %v: must be 0 or more", f.duration)
			case f.interval <= 0:
				return usagef("--interval %v: must be positive", f.interval)
			}
			return f.run(cmd.Context(), w, args[0], dir)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVarP(&f.duration, "duration", "d", 0, "how long to record; 0 for no limit")
	flags.DurationVar(&f.interval, "interval", 10*time.Millisecond, "maximum time between two polls of a ring")
	addInclude(flags, &f.include, "record")
	return cmd
}

func (f *recordFlags) run(ctx context.Context, w world, file, dir string) error {
	if err := patherr.Directory(patherr.Rings, dir); err != nil {
		return err
	}
	if err := checkInclude(f.include); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("record to %s: the file exists; specify another file", file)
	case errors.Is(err, os.ErrNotExist):
		return patherr.Explain(patherr.Parent, filepath.Dir(file), err)
	case err != nil:
		return patherr.Explain(patherr.Parent, file, err)
	}
	return errors.Join(f.record(ctx, w, dir, out), out.Close())
}

func (f *recordFlags) record(ctx context.Context, w world, dir string, out *os.File) error {
	fmt.Fprintf(w.err, "Recording the rings of %s to %s; press Ctrl-C to stop\n", dir, out.Name())
	r, err := recording.NewRecorder(recording.RecorderConfig{
		Dir: dir, Tool: "nixlring " + programVersion(), Include: f.include, Interval: f.interval, Out: out, Now: w.now,
		Report: func(n notice.Notice) {
			if n.Kind != notice.RingLapped { // reported at the end
				sayWarning(w.err, n)
			}
		},
	})
	if err != nil {
		return err
	}
	start := w.now()
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(f.duration, cancel).Stop() // with a deadline, the engine would say that reading hangs
	}
	err = errors.Join(r.Run(ctx), r.Close())
	s := r.Stats()
	fmt.Fprintf(w.err, "Recorded %s events of %s (%s) in %v\n", units.Count(s.Events), plural(s.Rings, "ring", "rings"),
		plural(int(s.Opened), "start of an agent", "starts of agents"), w.now().Sub(start).Round(100*time.Millisecond))
	if s.Omitted > 0 {
		fmt.Fprintf(w.err, "Not recorded: %s, because a recording has at most %d rings; record a subdirectory\n",
			plural(int(s.Omitted), "start of another agent", "starts of other agents"), recording.MaxAgents)
	}
	if s.Missed > 0 {
		fmt.Fprintf(w.err, "Events are missing: %s, an agent overwrote events between two polls; use a shorter --interval\n",
			plural(int(s.Missed), "time", "times"))
	}
	return err
}

// sayWarning prints a warning, which may explain missing events.
func sayWarning(say io.Writer, n notice.Notice) {
	if n.Level < slog.LevelWarn || n.Kind == notice.DirectoryOnDisk { // a concern of consumers
		return
	}
	text := n.String()
	if n.Kind == notice.RingFull {
		text = units.Printable(n.Path) + ": ring is full; its agent drops events until a consumer takes some"
	}
	fmt.Fprintln(say, text)
}
