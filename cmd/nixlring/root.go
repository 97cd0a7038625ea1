// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker. See the Makefile.
var version string

func newRoot(w world) *cobra.Command {
	root := &cobra.Command{
		Use:   "nixlring",
		Short: "Inspect, record and simulate telemetry rings of NIXL agents",
		Long: `Nixlring works with the telemetry rings of NIXL agents. Each agent writes one
ring file to a directory. Ls, inspect, top, why and web also read the stores of
NIXL's prometheus_mp exporter.

Without a directory, top, why, web, slow and record find the agents of all
processes. Ls lists the default directory of agents: NIXL_TELEMETRY_DIR, else
/tmp.

Exit codes: 0 success, 1 error, or problems found (why), 2 invalid command line,
3 nothing to examine (inspect, why).`,
		Example: `  nixlring simulate /run/nixl --agents 4 --duration 1m
  nixlring ls /run/nixl
  nixlring top /run/nixl
  nixlring why /run/nixl
  nixlring web /run/nixl
  nixlring slow /run/nixl
  nixlring read /run/nixl/decode-0
  nixlring inspect /run/nixl/decode-0
  nixlring record bug.jsonl.zst /run/nixl`,
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:          cobra.NoArgs, // the first argument of the root is the name of an unknown command
	}
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	root.AddCommand(newLs(w), newRead(w), newInspect(w), newTop(w), newWhy(w), newWeb(w), newSlow(w), newRecord(w), newSimulate(w), newSession(w))
	return root
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown version)"
}
