// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
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
For a store of NIXL's prometheus_mp exporter, it shows the agent and the process.

AGENT is the name of an agent as nixlring top shows it without DIR, such as
decode-0/vllm/agent, or only its end, such as agent, if no other agent has it.

Inspect never changes the file. Only its owner and root can see whether it is in
use, and only root can see which processes of other users have it mapped.

Exit code 3 means that the file isn't a readable ring or store; the report says
why.`,
		Example: `  nixlring inspect /tmp/agent
  sudo nixlring inspect /run/nixl/decode-0 --output json
  sudo nixlring inspect /dev/shm/nixl/nixl.17832.1795211775677999379.0.mmap`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := locate(cmd.Context(), w, args[0])
			if err != nil {
				return err
			}
			return runInspect(w, path, out.value)
		},
	}
	out = addOutput(cmd, "text", "json")
	return cmd
}

// locate returns the path of the agent with a name. A path remains as it is, even if there is no file.
func locate(ctx context.Context, w world, name string) (string, error) {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	var f watchFlags
	if f.complete(nil, w, nil) != nil {
		return name, nil
	}
	source, err := f.open(w, 0, false, 0)
	if err != nil {
		return name, nil
	}
	defer source.Close()
	frame, err := source.Next(ctx)
	if err != nil {
		return name, nil
	}
	path, err := named(frame.Agents, name)
	return cmp.Or(path, name), err
}

// named returns the path of the agent with a name or, as metrics have it, with the end of a name; "" if there is none.
func named(agents []diagnose.Agent, name string) (path string, err error) {
	var all []string
	for i := range agents {
		switch a := &agents[i]; {
		case a.Name == name:
			return a.Path, nil
		case strings.HasSuffix(a.Name, "/"+name):
			path, all = a.Path, append(all, a.Name)
		}
	}
	if len(all) > 1 {
		return "", fmt.Errorf("%s: %d agents have this name; specify one of them as nixlring top shows it, such as %s", units.Printable(name), len(all), units.Printable(all[0]))
	}
	return path, nil
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
