// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// slowFlags is the command line of nixlring slow.
type slowFlags struct {
	watchFlags
	limit    time.Duration
	duration time.Duration
	output   *output
	written  uint64
}

// slowTransfer is the time above which recordings contain all transfers.
const slowTransfer = time.Second

func newSlow(w world) *cobra.Command {
	var f slowFlags
	cmd := &cobra.Command{
		Use:   "slow [DIR|RECORDING]",
		Short: "Print slow transfers as they occur",
		Long: fmt.Sprintf(`Slow prints a line for each slow transfer of all agents until interrupted. It
first prints those that are already in the rings.

`+sourceHelp+`

A transfer is slow if it took longer than --slow-transfer. A recording has all
transfers that took longer than a second, and of the others only the slowest of each
agent in each second. An agent writes four events per transfer; if one of them is
missing, the transfer isn't printed. Slow misses events that a consumer takes and
the agent overwrites before it reads them. A full ring without a consumer stops
changing.

Only layout v1 has timestamps; for other layouts, TIME is when the events were read.
In JSON, there is one object per line. The receiver can also log slow transfers; see
its setting logs.`, "slow"),
		Example: `  nixlring slow
  nixlring slow /run/nixl --slow-transfer 50ms
  nixlring slow bug.jsonl.zst --include 'decode-*' --output json`,
		Args: takes,
		RunE: watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.limit, "slow-transfer", slowTransfer, "print transfers that took longer than this")
	flags.DurationVarP(&f.duration, "duration", "d", 0, "how long to observe; 0 for no limit")
	f.watchFlags.register(cmd, "observe")
	f.output = addOutput(cmd, "text", "json")
	return cmd
}

func (f *slowFlags) complete(cmd *cobra.Command, w world, args []string) error {
	switch {
	case f.duration < 0:
		return usagef("--duration %v: must be 0 or more", f.duration)
	case f.limit <= 0:
		return usagef("--slow-transfer %v: must be positive", f.limit)
	}
	return f.watchFlags.complete(cmd, w, args)
}

func (f *slowFlags) run(ctx context.Context, w world) (err error) {
	const interval = 250 * time.Millisecond
	source, err := f.open(w, interval, false, f.limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if f.output.value == "text" {
		err = f.line(w.out, "TIME", "DIRECTION", "SIZE", "TOOK", "POST", "THROUGHPUT", "AGENT")
	}
	if err != nil {
		return err
	}
	return f.follow(ctx, w, source)
}

// follow prints the slow transfers of frames until the end of the duration, of a recording, or of ctx. The duration
// begins with the first frame, which has what was already in the rings.
func (f *slowFlags) follow(ctx context.Context, w world, source fleet.Source) (err error) {
	var begin, at time.Time
	var said []string
	var agents int
	for err == nil && (f.duration == 0 || begin.IsZero() || at.Sub(begin) < f.duration) {
		frame, errFrame := source.Next(ctx)
		if errors.Is(errFrame, io.EOF) || ctx.Err() != nil {
			break
		}
		if errFrame != nil {
			if begin.IsZero() {
				return errFrame
			}
			frame = &diagnose.Frame{Notes: []string{errFrame.Error()}} // it is temporary
		} else {
			agents = len(frame.Agents)
		}
		if at = time.Now(); f.recorded {
			at = frame.Time
		}
		if begin.IsZero() {
			begin = at
		}
		for _, note := range frame.Notes {
			if !slices.Contains(said, note) {
				fmt.Fprintln(w.err, note)
			}
		}
		said = frame.Notes
		err = f.print(w.out, frame)
	}
	fmt.Fprintf(w.err, "Slow transfers printed: %s, of %s\n", units.Count(f.written), plural(agents, "agent", "agents"))
	return err
}

// slowLine is a slow transfer in the JSON output.
type slowLine struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`
	diagnose.Transfer
	Speed float64 `json:"throughput_bytes_per_second"`
}

func (f *slowFlags) print(out io.Writer, frame *diagnose.Frame) (err error) {
	for i := range frame.Agents {
		a := &frame.Agents[i]
		for _, t := range a.Transfers {
			if err != nil {
				return err
			}
			if t.Took <= f.limit.Seconds() {
				continue
			}
			f.written++
			if f.output.value == "json" {
				err = json.NewEncoder(out).Encode(slowLine{a.Name, a.Path, t, t.Speed()})
				continue
			}
			direction := semconv.Transmit
			if t.Receive {
				direction = semconv.Receive
			}
			err = f.line(out, t.Time.Format("2006-01-02 15:04:05.000000"), direction, units.Bytes(t.Bytes), units.Duration(t.Took),
				units.Duration(t.Post), units.Throughput(t.Speed()), a.Name)
		}
	}
	return err
}

// line writes columns of fixed widths, because later lines aren't known yet.
func (f *slowFlags) line(out io.Writer, at, direction, size, took, post, throughput, agent string) error {
	_, err := fmt.Fprintf(out, "%-26s  %-9s  %8s  %8s  %8s  %10s  %s\n", at, direction, size, took, post, throughput, agent)
	return err
}
