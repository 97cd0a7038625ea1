// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// slowFlags is the command line of nixlring slow.
type slowFlags struct {
	watchFlags
	slowTransfer  time.Duration
	minThroughput float64
	duration      time.Duration
	output        *output
	written       uint64
}

func newSlow(w world) *cobra.Command {
	var f slowFlags
	cmd := &cobra.Command{
		Use:   "slow [DIR|RECORDING]",
		Short: "Print slow transfers as they occur",
		Long: fmt.Sprintf(`Slow prints a line for each slow transfer of all agents until interrupted. From
rings, it first prints those that are already in them.

`+sourceHelp+`

A transfer is slow if it took longer than --slow-transfer, or if it had at least
1 MiB and a lower throughput than --min-throughput. An agent writes four events per
transfer; if one of them is missing, the transfer isn't printed. Slow misses events
that a consumer takes and the agent overwrites before it reads them. A full ring
without a consumer stops changing.

Only layout v1 has timestamps; for other layouts, TIME is when the events were read.
JSON has one object per line. The receiver can log slow transfers by the same
conditions; see its setting logs.`, "slow"),
		Example: `  nixlring slow
  nixlring slow /run/nixl --slow-transfer 50ms
  nixlring slow --slow-transfer 0 --min-throughput 1e9 --include 'decode-*' --output json`,
		Args: takes,
		RunE: watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.slowTransfer, "slow-transfer", time.Second, "print transfers that took longer than this; 0 for no limit")
	flags.Float64Var(&f.minThroughput, "min-throughput", 0, "print transfers of 1 MiB or more with fewer `BYTES` per second; 0 for no limit")
	flags.DurationVarP(&f.duration, "duration", "d", 0, "how long to observe; 0 for no limit")
	f.watchFlags.register(cmd, "observe")
	f.output = addOutput(cmd, "text", "json")
	return cmd
}

func (f *slowFlags) complete(cmd *cobra.Command, w world, args []string) error {
	switch {
	case f.duration < 0:
		return usagef("--duration %v: must be 0 or more", f.duration)
	case f.slowTransfer < 0:
		return usagef("--slow-transfer %v: must be 0 or more", f.slowTransfer)
	case !(f.minThroughput >= 0 && f.minThroughput <= math.MaxInt64):
		return usagef("--min-throughput %v: must be 0 or more", f.minThroughput)
	case f.slowTransfer == 0 && f.minThroughput == 0:
		return usagef("no condition for slow transfers; set --slow-transfer or --min-throughput")
	}
	return f.watchFlags.complete(cmd, w, args)
}

func (f *slowFlags) run(ctx context.Context, w world) (err error) {
	const interval = 250 * time.Millisecond
	source, err := f.open(w, interval, false, &tally.Slow{Duration: f.slowTransfer, MinThroughput: uint64(math.Ceil(f.minThroughput))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if f.output.value == "text" {
		err = f.line(w.out, "TIME", "DIRECTION", "SIZE", "TOOK", "POST", "THROUGHPUT", "WHY", "AGENT")
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

// slowTransfer is a slow transfer in the JSON output.
type slowTransfer struct {
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
			f.written++
			if f.output.value == "json" {
				err = json.NewEncoder(out).Encode(slowTransfer{a.Name, a.Path, t, t.Speed()})
				continue
			}
			direction := semconv.Transmit
			if t.Receive {
				direction = semconv.Receive
			}
			err = f.line(out, t.Time.Format("2006-01-02 15:04:05.000000"), direction, units.Bytes(t.Bytes), units.Duration(t.Took),
				units.Duration(t.Post), units.Throughput(t.Speed()), t.Cause, a.Name)
		}
	}
	return err
}

// line writes columns of fixed widths, because later lines aren't known yet.
func (f *slowFlags) line(out io.Writer, at, direction, size, took, post, throughput, cause, agent string) error {
	_, err := fmt.Fprintf(out, "%-26s  %-9s  %8s  %8s  %8s  %10s  %-14s  %s\n", at, direction, size, took, post, throughput, cause, agent)
	return err
}
