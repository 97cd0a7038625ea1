// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// replayFlags is the command line of nixlring replay.
type replayFlags struct {
	speed float64
}

func newReplay(w world) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE DIR",
		Short: "Replay a recording as rings",
		Long: `Replay writes the rings of a recording to DIR as their agents did: with the same
names, layouts and capacities, the same events at the same intervals, and the
same restarts. The timestamps of layout v1 stay those of the recording.

If a ring is full, replay waits for its reader, so readers that keep up miss
nothing, at any speed. If nobody reads from the ring for a second, replay drops
the events that don't fit, as an agent does, and counts them. At the end it
leaves the rings, as agents do.

Replay takes over existing rings of the same names, except for those whose agent
is still running. DIR is required: NIXL_TELEMETRY_DIR may be the directory of
real agents.

A truncated recording is replayed up to its end; the exit code is 1.`,
		Example: `  nixlring replay bug.jsonl.zst /tmp/replay
  nixlring replay busy.jsonl.zst /tmp/replay --speed 10`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(f.speed > 0) {
				return usagef("--speed %v: must be positive", f.speed)
			}
			return f.run(cmd.Context(), w, args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&f.speed, "speed", 1, "replay at `NUMBER` times the original speed")
	return cmd
}

func (f *replayFlags) run(ctx context.Context, w world, file, dir string) error {
	if err := patherr.Directory(patherr.Rings, dir); err != nil {
		return err
	}
	in, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO without a writer would block
	if err != nil {
		return patherr.Explain(patherr.Recording, file, err)
	}
	defer in.Close()
	rec, err := recording.Open(in)
	if err != nil {
		return fmt.Errorf("replay %s: %w", file, err)
	}
	defer rec.Close()
	p := recording.Player{Dir: dir, Speed: f.speed, Now: w.now, Check: func(path string) error { return checkTakeover(w.proc, path) }}
	fmt.Fprintf(w.err, "Replaying %s in %s at %v times the original speed; press Ctrl-C to stop\n", file, dir, f.speed)
	err = p.Run(ctx, rec)
	if errors.Is(err, context.Canceled) {
		err = nil // interrupted by the user
	}
	if err != nil {
		err = fmt.Errorf("replay %s: %w", file, err)
	}
	err = errors.Join(err, p.Close())
	if err != nil && p.Played.Rings == 0 {
		return err
	}
	return errors.Join(err, f.write(w, p.Played))
}

func (f *replayFlags) write(w world, p recording.Played) error {
	_, err := fmt.Fprintf(w.out, "Replayed %s events of %s (%s), %.1f s of the recording; dropped because nobody read them: %s\n",
		units.Count(p.Written), plural(p.Rings, "ring", "rings"), plural(int(p.Starts), "start of an agent", "starts of agents"),
		p.Seconds, units.Count(p.Dropped))
	if p.Missed > 0 {
		fmt.Fprintf(w.err, "The recording itself lacks events: the recorder missed events %s\n", plural(int(p.Missed), "time", "times"))
	}
	return err
}
