// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// whyFlags is the command line of nixlring why.
type whyFlags struct {
	watchFlags
	length time.Duration
	output *output
	quiet  bool
}

// errProblems selects exitError. The command has already printed the problems.
var errProblems = errors.New("there are problems")

// errUnjudged selects exitNoRing. The command has already printed what wasn't judged.
var errUnjudged = errors.New("not enough to judge")

func newWhy(w world) *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:   "why [DIR | RECORDING]",
		Short: "Explain what is wrong with agents",
		Long: `Why watches agents, and then explains what is wrong in plain sentences, the worst
first: what was measured, what it isn't, and what to do.

` + fmt.Sprintf(sourceHelp, "why") + `

` + recordingHelp + `

It finds

  - agents that are far slower than their peers: the agents in the same directory
    or, if it is set, with the same OTEL_SERVICE_NAME, and with transfers of a
    similar size. This requires at least four agents with 20 transfers each, or
    three if one has less than 22% of their speed. Size and load don't matter;
  - agents that hang while their peers continue, or are idle;
  - agents that spend most of their time posting, and small transfers that wait
    behind large ones;
  - operations that fail, without those that were canceled;
  - rings that overflow, are nearly full, aren't drained, or are read by another
    program;
  - processes that use NIXL without telemetry, or with NIXL_TELEMETRY_ENABLE=n,
    which breaks vLLM. Examining processes of other users requires root.

The alerts have the same definitions, but compare longer times: only they find
agents that are slower than an hour ago. For a longer watch, use --for.

If it finds nothing, it lists what it couldn't judge. For example, an agent that
transfers nothing may be spare or hang, and ten seconds don't show whether agents
are slower than before.

Exit codes: 0 all checks were made and found nothing, 1 problem or error, 2 invalid
command line, 3 not enough to judge.`,
		Example: `  nixlring why
  nixlring why /run/nixl --for 1m
  nixlring why bug.jsonl.zst
  nixlring why -o json`,
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeSources,
		RunE:              watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.length, "for", 10*time.Second, "how long to watch")
	f.watchFlags.register(cmd, "watch")
	f.output = addOutput(cmd, "text", "json")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print findings only")
	return cmd
}

// complete sets the values that come from the command line or the environment, and rejects
// invalid flags.
func (f *whyFlags) complete(cmd *cobra.Command, w world, args []string) error {
	const shortest = 100 * time.Millisecond
	if err := f.watchFlags.complete(cmd, w, args); err != nil {
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
	Directory string `json:"directory,omitempty"` // whose rings were read
	Recording string `json:"recording,omitempty"` // that was read
	where     string
	Seconds   float64            `json:"seconds"` // length of the watch
	Agents    int                `json:"agents"`
	Exited    int                `json:"exited"`            // how many of them have exited
	Warning   string             `json:"warning,omitempty"` // about the watch
	Findings  []diagnose.Finding `json:"findings"`          // the worst first; never null
	Unjudged  []diagnose.Check   `json:"unjudged"`          // never null
}

// problems returns the number of findings that aren't only information.
func (v *verdict) problems() (n int) {
	for i := range v.Findings {
		if v.Findings[i].Severity.AtLeast(diagnose.Warning) {
			n++
		}
	}
	return n
}

func (f *whyFlags) run(ctx context.Context, w world) (err error) {
	source, err := f.open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	v, err := f.watch(ctx, w, source)
	if err != nil {
		return err
	}
	if f.output.value == "json" {
		err = writeJSON(w.out, v)
	} else {
		err = v.write(w, f.quiet)
	}
	switch {
	case err != nil:
		return err
	case v.problems() > 0:
		return errProblems
	case len(v.Unjudged) > 0:
		return errUnjudged
	}
	return nil
}

// open starts watching, or opens the recording.
func (f *whyFlags) open(w world) (top.Source, error) {
	if f.recorded {
		return f.openRecording(nil)
	}
	return f.start(w, false)
}

// watch samples the agents until the end of the watch, or until ctx is done, and explains what it saw.
func (f *whyFlags) watch(ctx context.Context, w world, source top.Source) (*verdict, error) {
	board := top.NewBoard(f.length, 1)
	var all []diagnose.Sample
	add := func() {
		s := source.Sample()
		board.Add(s)
		if s.Failed == nil {
			all = append(all, s.Diagnose())
		}
	}
	add()
	if r, ok := source.(*top.Recording); ok {
		for step, more := playStep, true; more; {
			more = r.Advance(ctx, step)
			add()
			if len(all) > 2*samples { // the recording is long: half as many are enough
				for i := range samples + 1 {
					all[i] = all[2*i]
				}
				all, step = all[:samples+1], 2*step
			}
		}
	} else {
		f.wait(ctx, add)
	}
	if err := board.Err(); err != nil {
		return nil, err
	}
	length := all[len(all)-1].At.Sub(all[0].At)
	rings := board.Rings()
	v := &verdict{where: f.where(source.Name()), Seconds: length.Seconds(), Agents: len(rings), Warning: board.Warning(), Findings: []diagnose.Finding{}}
	switch {
	case f.recorded:
		v.Recording = f.dir
	default:
		v.Directory = f.dir
	}
	for i := range rings {
		if rings[i].Up == diagnose.No {
			v.Exited++
		}
	}
	windows := diagnose.Watch(length)
	v.Findings = append(v.Findings, diagnose.AddRings(diagnose.Diagnose(all, windows), rings)...)
	v.Unjudged = append([]diagnose.Check{}, diagnose.Unjudged(diagnose.Checks(all, rings, windows))...)
	if !f.recorded {
		v.Findings = append(v.Findings, diagnose.Processes(processes(w))...)
	}
	diagnose.Sort(v.Findings)
	return v, nil
}

// The number of samples in a watch, and the first time between two samples of a recording.
const (
	samples  = 20
	playStep = 250 * time.Millisecond
)

// wait adds samples until the end of the watch, or until ctx is done.
func (f *whyFlags) wait(ctx context.Context, add func()) {
	end, ticker := time.NewTimer(f.length), time.NewTicker(min(f.length/samples, time.Minute))
	defer end.Stop()
	defer ticker.Stop()
	for ended := false; !ended; {
		select {
		case <-ticker.C:
		case <-end.C:
			ended = true
		case <-ctx.Done():
			ended = true
		}
		add()
	}
}

// processes returns the processes that use NIXL. Those that can't be examined are missing.
func processes(w world) (list []diagnose.Process) {
	found, _ := process.New(process.Config{Proc: w.proc}).Scan(w.now())
	for _, p := range found {
		list = append(list, diagnose.Process{
			PID: p.PID, Command: cmp.Or(p.Executable, "a process"),
			Telemetry: len(p.Dirs)+len(p.Stores) > 0, Enable: p.Env[process.EnvEnable],
		})
	}
	return list
}
