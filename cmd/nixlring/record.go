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

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// recordFlags is the command line of nixlring record.
type recordFlags struct {
	watchFlags
	file     string
	duration time.Duration
}

func newRecord(w world) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record FILE [DIR]",
		Short: "Record what agents do to a file",
		Long: fmt.Sprintf(`Record watches agents as nixlring why does until interrupted, and writes what it
sees to a file, once per second, for a bug report or to look at it elsewhere: the
names and attributes of the agents, their totals, the slowest transfers, and all
that took longer than a second; the programs of the host that use NIXL, and the
counters of its RDMA ports and network interfaces. It contains no transferred data.
Nixlring why, top, web and slow read it. FILE is - for standard output.

`+sourceHelp+`

The file has one JSON object per line, as nixlring top -o json prints them,
compressed with zstd. If record crashes, the file is readable up to the last second.
Other commands refuse lines of more than 256 MiB, and files that require more than
64 MiB to decompress.`, "record"),
		Example: `  nixlring record bug.jsonl.zst
  nixlring record busy.jsonl.zst /run/nixl --duration 1m
  kubectl exec POD -- nixlring record -d 1m - >bug.jsonl.zst
  ssh HOST nixlring record - | nixlring web -`,
		Args: takes,
		RunE: watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVarP(&f.duration, "duration", "d", 0, "how long to record; 0 for no limit")
	f.watchFlags.register(cmd, "record")
	return cmd
}

func (f *recordFlags) complete(cmd *cobra.Command, w world, args []string) error {
	if f.duration < 0 {
		return usagef("--duration %v: must be 0 or more", f.duration)
	}
	f.file = args[0]
	if err := f.watchFlags.complete(cmd, w, args[1:]); err != nil {
		return err
	}
	if f.recorded {
		return usagef("%s is a recording; specify the directory of the rings", f.dir)
	}
	return nil
}

func (f *recordFlags) run(ctx context.Context, w world) (err error) {
	const interval = time.Second
	source, err := f.open(w, interval, false, slowTransfer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if f.file == fleet.Stdin {
		if isTerminal(w.out) {
			return usagef("standard output is a terminal; redirect it to a file or a command")
		}
		return f.record(ctx, w, source, w.out)
	}
	out, err := os.OpenFile(f.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("record to %s: the file exists; specify another file", f.file)
	case errors.Is(err, os.ErrNotExist):
		return patherr.Explain(patherr.Parent, filepath.Dir(f.file), err)
	case err != nil:
		return patherr.Explain(patherr.Parent, f.file, err)
	}
	return errors.Join(f.record(ctx, w, source, out), out.Close())
}

// record writes frames until the end of the duration, or of ctx.
func (f *recordFlags) record(ctx context.Context, w world, source fleet.Source, out io.Writer) error {
	fmt.Fprintf(w.err, "Recording the agents in %s to %s; press Ctrl-C to stop\n", source.Name(), f.file)
	file, err := recording.NewWriter(out)
	if err != nil {
		return err
	}
	var begin time.Time
	var agents int
	var searched []diagnose.Process
	var said string
	frames := 0
	for frames == 0 || f.duration == 0 || time.Since(begin) < f.duration {
		frame, errFrame := source.Next(ctx)
		switch {
		case ctx.Err() != nil:
		case errFrame != nil && frames == 0:
			return errors.Join(errFrame, file.Close())
		case errFrame != nil:
			if text := errFrame.Error(); text != said { // it is temporary
				said = text
				fmt.Fprintln(w.err, text)
			}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if frames%processesEvery == 0 {
			searched = processes(w)
		}
		if frames++; frames == 1 {
			begin = time.Now()
		}
		frame.Processes, agents = searched, len(frame.Agents)
		if err := file.Write(frame); err != nil {
			return fmt.Errorf("record to %s: %w", f.file, err)
		}
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("record to %s: %w", f.file, err)
	}
	fmt.Fprintf(w.err, "Recorded %s and %s\n", plural(agents, "agent", "agents"), plural(frames, "frame", "frames"))
	return nil
}

// processesEvery is the number of frames between two searches for processes without telemetry, which examine all processes.
const processesEvery = 30
