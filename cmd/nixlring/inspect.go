// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
)

func newInspect(w world) *cobra.Command {
	var watch time.Duration
	var out *output
	cmd := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Show all details of one ring or store, and advice",
		Long: `Inspect shows the details of one ring: the file and its owner, the header and
whether it is valid, the fill level, the processes that have the ring mapped, the
consumer, and whether the agent is running. It also gives advice, for example
about a wrong user, a full ring, a buffer that is too small, the ring of an
exited agent, or other readers.

For a store of NIXL's prometheus_mp exporter, inspect shows the agent, the
process, whether it is running, and its totals.

Inspect never changes the file. Only the ring's owner and root can see whether
the ring is in use and whether processes of other users have it mapped. Only
its owner and root can read a store.

With --for, inspect watches the ring and shows the largest burst within a run
interval (NIXL_TELEMETRY_RUN_INTERVAL, or else 100ms).

` + exitCodes + `
Exit code 3 means that the file isn't a readable ring or store; the report says
why.`,
		Example: `  nixlring inspect /tmp/agent
  nixlring inspect /tmp/agent --for 10s
  sudo nixlring inspect /run/nixl/decode-0 --output json
  sudo nixlring inspect /dev/shm/nixl/nixl.17832.1795211775677999379.0.mmap`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch < 0 {
				return usagef("--for %v: must be 0 or more", watch)
			}
			if watch > 0 && mpstore.IsName(filepath.Base(args[0])) {
				return usagef("--for %v: only a ring can be watched, this is a store", watch)
			}
			return runInspect(cmd.Context(), w, args[0], watch, out.value)
		},
	}
	cmd.Flags().DurationVar(&watch, "for", 0, "watch the ring for `DURATION` and show its bursts")
	out = addOutput(cmd, "text", "json")
	return cmd
}

func runInspect(ctx context.Context, w world, path string, watch time.Duration, format string) error {
	interval, err := w.env.RunInterval()
	if err != nil {
		return err
	}
	r, err := ringfile.Inspect(ctx, ringfile.Config{
		Path: path, Proc: w.proc, For: watch, RunInterval: interval, EUID: os.Geteuid(), Now: w.now,
	})
	if err != nil {
		return patherr.Explain(patherr.Ring, path, err)
	}
	if format == "json" {
		err = writeJSON(w.out, r)
	} else {
		err = r.WriteText(w.out, w.now())
	}
	if err == nil && !r.Ring && r.Store == nil {
		return errNoRing
	}
	return err
}
