// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/units"
)

// replayFlags is the command line of nixlring replay.
type replayFlags struct {
	speed  float64
	remove bool
	force  bool
	quiet  bool
	output *output
}

func newReplay(w world) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE DIR",
		Short: "Play a recording back as rings",
		Long: `Replay does to rings in DIR what the agents of a recording did: it makes them, with
the same names, layouts and capacities, writes their events at the same times,
and starts them anew where an agent did. An agent's own timestamps, of layout
v1, stay those of the recording.

A full ring is waited for, so that a reader that keeps up loses nothing, at any
speed. If nobody reads from a ring for a second, what doesn't fit is dropped, as
an agent does, and counted. The rings are left at the end, as agents leave
theirs. A ring of the same name that exists is taken over, unless its agent is
still there: then nothing is played (see --force).

DIR must be named: that of NIXL_TELEMETRY_DIR may be one where agents are at work.

A recording whose recorder died is played as far as it goes; the exit code is 1
then.

` + exitCodes,
		Example: `  nixlring replay bug.nixlrec /tmp/replay
  nixlring replay busy.nixlrec /tmp/replay --speed 10 --remove`,
		Args: makesRings(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(f.speed > 0) {
				return usagef("--speed %v: it is more than 0", f.speed)
			}
			return f.run(cmd.Context(), w, args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&f.speed, "speed", 1, "play `NUMBER` times as fast as it happened")
	flags.BoolVar(&f.force, "force", false, forceUsage)
	flags.BoolVar(&f.remove, "remove", false, "delete the rings at the end")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	f.output = addOutput(cmd, "text", "json")
	return cmd
}

func (f *replayFlags) run(ctx context.Context, w world, file, dir string) error {
	if err := place.Directory(place.Rings, dir); err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return place.Explain(place.Recording, file, err)
	}
	defer in.Close()
	if err := f.check(w, in, dir); err != nil {
		return fmt.Errorf("replay %s: %w", file, err)
	}
	rec, err := recording.NewReader(in)
	if err != nil {
		return fmt.Errorf("replay %s: %w", file, err)
	}
	defer rec.Close()
	p, err := recording.NewPlayer(rec, recording.PlayerConfig{Dir: dir, Speed: f.speed, Now: w.now})
	if err != nil {
		return usageError{err}
	}
	fmt.Fprintf(notes(w, f.quiet), "Replaying %s in %s at %v times its speed; Ctrl-C stops\n", file, dir, f.speed)
	err = p.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil // as asked
	}
	if err != nil {
		err = fmt.Errorf("replay %s: %w", file, err)
	}
	end := p.Close
	if f.remove {
		end = p.Remove
	}
	return errors.Join(err, end(), f.write(w, p.Played()))
}

// check looks through the recording for its rings, and refuses those that
// can't be taken over before any is touched.
func (f *replayFlags) check(w world, in io.ReadSeeker, dir string) error {
	if f.force {
		return nil
	}
	names, err := recording.Rings(in)
	if err != nil {
		return err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return errors.New("it can't be read twice, to see first which rings it makes; save it to a file, or see --force")
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return takeable(w.proc, names)
}

// replayed is what was replayed, as JSON. The field names are stable.
type replayed struct {
	Rings   int     `json:"rings"`
	Lives   uint64  `json:"lives"`
	Written uint64  `json:"events_written"`
	Dropped uint64  `json:"events_dropped"`
	Missed  uint64  `json:"gaps_in_recording"`
	Seconds float64 `json:"seconds"` // of the recording
}

func (f *replayFlags) write(w world, p recording.Played) error {
	if f.output.value == "json" {
		return writeJSON(w.out, replayed{p.Rings, p.Lives, p.Written, p.Dropped, p.Missed, p.At.Seconds()})
	}
	_, err := fmt.Fprintf(w.out, "Replayed %s events of %s (%s), %v of the recording; dropped as nobody read: %s\n",
		units.Count(p.Written), plural(p.Rings, "ring", "rings"), plural(int(p.Lives), "life of an agent", "lives of agents"),
		p.At.Round(100*time.Millisecond), units.Count(p.Dropped))
	if p.Missed > 0 {
		fmt.Fprintf(w.err, "The recording itself lacks events: its recorder missed some, %s\n", plural(int(p.Missed), "time", "times"))
	}
	return err
}
