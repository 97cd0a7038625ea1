// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

func newInspect(w world) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:   "inspect PATH|AGENT",
		Short: "Show all details of one ring or store, and advice",
		Long: `Inspect shows the details of one ring: the file and its owner, the header, the
fill level, the processes that have the ring mapped, the consumer, and whether
the agent is running. It gives advice, for example about a wrong user, a full
ring, a buffer that is too small, the ring of an exited agent, or other readers.
Of a store of NIXL's prometheus_mp exporter, it shows the agent and the process.

AGENT is the name of an agent as nixlring top shows it without DIR, such as
decode-0/vllm/agent.

Inspect never changes the file. Only its owner and root can see whether it is in
use, and only root which processes of other users have it mapped.

Exit code 3 means that the file isn't a readable ring or store; the report says
why.`,
		Example: `  nixlring inspect /tmp/agent
  sudo nixlring inspect /run/nixl/decode-0 --output json
  sudo nixlring inspect /dev/shm/nixl/nixl.17832.1795211775677999379.0.mmap`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runInspect(w, locate(cmd.Context(), w, args[0]), out.value)
		},
	}
	out = addOutput(cmd, "text", "json")
	return cmd
}

// locate returns the path of the agent with a name. A path remains as it is, even if there is no file.
func locate(ctx context.Context, w world, name string) string {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return name
	}
	var f watchFlags
	if f.complete(nil, w, nil) != nil {
		return name
	}
	source, err := f.open(w, 0, false, 0)
	if err != nil {
		return name
	}
	defer source.Close()
	if frame, err := source.Next(ctx); err == nil {
		for i := range frame.Agents {
			if a := &frame.Agents[i]; a.Name == name {
				return a.Path
			}
		}
	}
	return name
}

func runInspect(w world, path, format string) error {
	r, err := ringfile.Inspect(path, w.proc, os.Geteuid())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: neither a file nor an agent; nixlring ls lists rings, and nixlring top agents", units.Printable(path))
	case err != nil:
		return patherr.Explain(patherr.Ring, path, err)
	}
	if format == "json" {
		err = writeJSON(w.out, r)
	} else {
		err = r.WriteText(w.out, w.now())
	}
	if err == nil && !r.Ring && r.Store == nil {
		return printedError(exitNoRing)
	}
	return err
}
