// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/inspect"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
)

func newInspect(w world) *cobra.Command {
	var watch time.Duration
	var out *output
	cmd := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Tell all about one ring, and what to do about it",
		Long: `Inspect tells what can be known of one ring from outside: its file and owner, the
fields of its header and whether they hold, how full it is, which processes have
it mapped, which one consumes it, and whether its agent is still there. Then it
says what an operator should do: about a wrong user, a ring that is full, a
buffer that is too small, what a dead agent has left behind, or other readers.

It looks only. Some of it takes the ring's owner or root: whether the ring is in
use, and what processes of other users have mapped.

With --for it watches the ring for a while and tells the largest burst within a
run interval (NIXL_TELEMETRY_RUN_INTERVAL, else 100ms).

` + exitCodes + `
3 means that the file isn't a ring that can be read; the report says why.`,
		Example: `  nixlring inspect /tmp/agent
  nixlring inspect /tmp/agent --for 10s
  sudo nixlring inspect /run/nixl/decode-0 --output json`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch < 0 {
				return usagef("--for %v: it is 0 or more", watch)
			}
			return runInspect(cmd.Context(), w, args[0], watch, out.value)
		},
	}
	cmd.Flags().DurationVar(&watch, "for", 0, "watch the ring for `DURATION` and tell its bursts")
	out = addOutput(cmd, "text", "json")
	return cmd
}

func runInspect(ctx context.Context, w world, path string, watch time.Duration, format string) error {
	interval, err := w.env.RunInterval()
	if err != nil {
		return err
	}
	r, err := inspect.Inspect(ctx, inspect.Config{
		Path: path, Proc: w.proc, For: watch, RunInterval: interval, EUID: os.Geteuid(), Now: w.now,
	})
	if err != nil {
		return place.Explain(place.Ring, path, err)
	}
	if format == "json" {
		err = writeJSON(w.out, r)
	} else {
		err = r.WriteText(w.out, w.now())
	}
	if err == nil && !r.Ring {
		return errNoRing
	}
	return err
}
