// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// whyFlags is the command line of nixlring why.
type whyFlags struct {
	watchFlags
	length time.Duration
	output *output
}

func newWhy(w world) *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:   "why [DIR|RECORDING]",
		Short: "Explain what is wrong with agents",
		Long: fmt.Sprintf(`Why watches agents, and then explains what is wrong in plain sentences, the worst
first: what was measured, what can be ruled out, and what to do.

`+sourceHelp+`

`+backendHelp+`
Why then judges at once the time that ends at --at and is as long as --for. A
finding must have held for two minutes. Why also prints the commands that examine
its host, evaluates the alerts, and prints those that add something. If the backend
has the recording rules, it evaluates all alerts; otherwise those that need only
metrics.

It finds

  - agents that are far slower than their peers: the agents in the same directory
    or, if agents are discovered, with the same OTEL_SERVICE_NAME, and with
    transfers of a similar size in the same direction. This requires at least four
    agents with 100 transfers each, or three if one has less than 22%% of their
    speed. Size and load don't matter. Why also reports if their processes have
    fewer RDMA devices open than those of all peers on this host, or only those
    of other NUMA nodes;
  - agents that hang while their peers continue, or are idle;
  - agents that restart again and again;
  - agents that spend most of their time posting;
  - operations that fail, without those that were canceled;
  - rings that overflow, are nearly full, aren't drained, or are read by another
    program;
  - metrics that no longer arrive, in a backend;
  - transfers that use TCP although the host has RDMA ports, but only if the
    counters of these ports and of the network interfaces leave no doubt. Seeing
    the counters requires root;
  - processes that use NIXL without telemetry, or with NIXL_TELEMETRY_ENABLE=n,
    which breaks vLLM. Examining processes of other users requires root.

The alerts have the same definitions, but compare longer times: only they find
agents that are slower than an hour ago, memory that grows, and transfers that
became smaller. Why also lists what it compared, and for how many agents. An agent
without transfers may be spare, or may hang.

Exit codes: 0 no problem, 1 problems, 2 invalid command line, 3 nothing to
examine, such as no running agent, or no permission.`, "why", "why"),
		Example: `  nixlring why
  nixlring why /run/nixl --for 1m
  nixlring why bug.jsonl.zst
  nixlring why --prometheus http://prometheus:9090 --job decode --at 2026-01-02T15:04:05Z
  nixlring why -o json`,
		Args: takes,
		RunE: watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.length, "for", 10*time.Second, "how long to watch, or how much of the past with --prometheus (default 10s, or 1h)")
	flags.Lookup("for").DefValue = "0s" // the text has both
	f.watchFlags.register(cmd, "watch")
	f.registerBackend(flags)
	f.output = addOutput(cmd, "text", "json")
	return cmd
}

// complete sets the values that come from the command line or the environment, and rejects
// invalid flags.
func (f *whyFlags) complete(cmd *cobra.Command, w world, args []string) error {
	const shortest = 100 * time.Millisecond
	if err := f.watchFlags.complete(cmd, w, args); err != nil {
		return err
	}
	if err := f.completeBackend(cmd, args, &f.length, time.Hour); err != nil {
		return err
	}
	if f.recorded && cmd.Flags().Changed("for") {
		return usagef("--for %v: why reads whole recordings; omit it", f.length)
	}
	if f.length < shortest {
		return usagef("--for %v: must be %v or more", f.length, shortest)
	}
	return nil
}

// verdict is the result of a watch.
type verdict struct {
	Directory string `json:"directory,omitempty"`  // whose rings were read
	Recording string `json:"recording,omitempty"`  // that was read
	Backend   string `json:"prometheus,omitempty"` // that was asked
	where     string
	volumes   bool               // only the volumes of pods were searched
	Until     time.Time          `json:"until,omitzero"` // the end of what the backend was asked for
	Seconds   float64            `json:"seconds"`        // length of the watch
	Agents    int                `json:"agents"`
	Exited    int                `json:"exited"`             // how many of them have exited
	Warnings  []string           `json:"warnings,omitempty"` // about the watch
	Findings  []diagnose.Finding `json:"findings"`           // the worst first; never null
	Checks    []diagnose.Check   `json:"checks"`             // what was compared; never null
	Still     string             `json:"still,omitempty"`    // says that nothing moves
}

// problems returns the number of causes that aren't only information.
func (v *verdict) problems() (n int) {
	for _, g := range diagnose.Group(v.Findings) {
		if g[0].Severity.AtLeast(diagnose.Warning) {
			n++
		}
	}
	return n
}

func (f *whyFlags) run(ctx context.Context, w world) error {
	v, err := f.examine(ctx, w)
	switch {
	case err != nil:
		return unseenError{err}
	case v.problems() > 0:
		return printedError(exitError)
	case v.Agents == v.Exited:
		return printedError(exitNoRing)
	}
	return nil
}

// examine watches, and prints the verdict.
func (f *whyFlags) examine(ctx context.Context, w world) (v *verdict, err error) {
	source, err := f.open(w, min(f.length/frames, time.Minute), false, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if v, err = f.watch(ctx, w, source); err != nil {
		return nil, err
	}
	if f.output.value == "json" {
		return v, writeJSON(w.out, v)
	}
	_, err = io.WriteString(w.out, v.text())
	return v, err
}

// frames is the number of frames in a watch. Of a recording, there are up to twice as many.
const frames = 20

// watch takes frames until the end of the watch, or until ctx is done, and explains what it saw.
func (f *whyFlags) watch(ctx context.Context, w world, source fleet.Source) (*verdict, error) {
	var all []*diagnose.Frame
	for f.past() || len(all) == 0 || all[len(all)-1].Time.Sub(all[0].Time) < f.length {
		frame, err := source.Next(ctx)
		if len(all) > 0 && (errors.Is(err, io.EOF) || ctx.Err() != nil) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, frame)
		if r, ok := source.(*fleet.Recording); ok && len(all) > 2*frames { // it is long: half as many are enough
			for i := range frames + 1 {
				all[i] = all[2*i]
			}
			all = all[:frames+1]
			r.Stretch()
		}
	}
	last := all[len(all)-1]
	length := last.Time.Sub(all[0].Time)
	v := &verdict{
		where: "in " + source.Name(), Seconds: length.Seconds(), Agents: len(last.Agents), Warnings: last.Notes,
		Findings: []diagnose.Finding{},
	}
	switch {
	case f.recorded:
		v.Recording = f.dir
	case f.past():
		v.Backend, v.Until = source.Name(), last.Time.UTC()
	default:
		v.Directory, v.volumes = f.dir, f.kubelet != ""
	}
	for i := range last.Agents {
		if last.Agents[i].Up == diagnose.No {
			v.Exited++
		}
	}
	judge := diagnose.Watched
	backend, _ := source.(*fleet.Backend)
	var alerts func([]diagnose.Finding) ([]diagnose.Finding, diagnose.Check, []string)
	if backend != nil {
		judge, alerts = diagnose.Held, backend.Alerts(ctx)
	}
	r := judge(all, diagnose.Watch(length))
	v.Still, v.Checks = r.Still, r.Checks
	v.Findings = append(v.Findings, r.Findings...)
	if backend != nil {
		found, check, notes := alerts(v.Findings)
		v.Findings, v.Checks, v.Warnings = append(v.Findings, found...), append(v.Checks, check), append(v.Warnings, notes...)
		for i := range v.Findings {
			backend.Locate(&v.Findings[i])
		}
	}
	if !f.past() {
		last.Processes = processes(w)
		fleet.Place(w.proc, last, v.Findings)
	}
	v.Findings = append(v.Findings, diagnose.Processes(last.Processes)...)
	diagnose.Sort(v.Findings)
	return v, nil
}

// processes returns the processes that use NIXL. Those that can't be examined are missing.
func processes(w world) (list []diagnose.Process) {
	found, _ := process.New(process.Config{Proc: w.proc}).Scan(w.now(), false)
	for _, p := range found {
		one := diagnose.Process{PID: p.PID, Command: cmp.Or(p.Executable, "a process"), Telemetry: len(p.Dirs) > 0, Exporter: p.Env[process.EnvExporter]}
		if env := process.Env(func(name string) (string, bool) { v, ok := p.Env[name]; return v, ok }); !env.Enabled() {
			one.Disabled = p.Env[process.EnvEnable]
		}
		list = append(list, one)
	}
	return list
}
