// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// simulateFlags is the command line of nixlring simulate.
type simulateFlags struct {
	fleet     simulate.FleetConfig
	scenario  string
	layout    string
	errorRate float64
	unread    bool
	output    *output
}

func newSimulate(w world) *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate DIR",
		Short: "Run simulated agents that write real rings",
		Long: `Simulate runs agents that write real rings in DIR, with traffic like that of a KV
cache, until interrupted, or until the duration is reached. Then it prints how much
it wrote. In JSON, each agent has the metrics that a reader of its ring must report.

Simulated agents behave like real ones: they register memory, flush once per run
interval, drop events if staging or the ring is full, leave their rings behind, and
take over an existing ring of the same name unless its agent is still running.
NIXL_TELEMETRY_BUFFER_SIZE and NIXL_TELEMETRY_RUN_INTERVAL have the same meaning.

The simulator also consumes the events, so that the rings don't fill up. It leaves a
ring to a Collector that opens it within two seconds. To start a Collector later, or
to watch rings that nobody reads, use --no-consumer.

Sizes are log-normal with a median of 4 MiB, in blocks of 8 KiB, up to 512 MiB.
Times are those of a link of 400 Gbit/s. The same seed gives the same transfers.

A scenario sets some of the flags, and properties that have no flag. Flags on the
command line override it:

` + scenarios() + `
With a --duration shorter than the period of a scenario, the duration is the period.

With --layout mixed, the agents write v1, v2, v3 and v4 in turn, and an agent that
restarts writes the next one, as after an upgrade.`,
		Example: `  nixlring simulate /tmp/rings --agents 4
  nixlring simulate /tmp/rings --scenario straggler --agents 8
  nixlring simulate /tmp/rings --rate 10000 --duration 30s --output json
  nixlring simulate /tmp/rings --layout mixed --agents 5 --restart-every 10s --error-rate 0.01`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.fleet.Dir = args[0]
			if err := f.complete(cmd, w); err != nil {
				return err
			}
			return f.run(cmd.Context(), w)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *simulateFlags) register(cmd *cobra.Command) {
	flags, agent := cmd.Flags(), &f.fleet.Agent
	flags.SortFlags = false
	flags.IntVarP(&f.fleet.Agents, "agents", "n", 1, "`NUMBER` of agents")
	flags.StringVarP(&f.scenario, "scenario", "s", "", "`SCENARIO` to run: "+strings.Join(scenarioNames(), ", "))
	flags.StringVar(&f.fleet.Prefix, "name", "sim", "agents are named `PREFIX`-0, PREFIX-1, …")
	flags.Float64VarP(&agent.Rate, "rate", "r", 100, "`NUMBER` of transfers per second of each agent")
	flags.DurationVarP(&agent.Duration, "duration", "d", 0, "how long the agents run; 0 for no limit")
	flags.StringVarP(&f.layout, "layout", "l", "v4", "`LAYOUT` of the rings: v1, v2, v3, v4 or mixed")
	flags.Float64Var(&f.errorRate, "error-rate", 0.001, "`SHARE` of the transfers that fail, from 0 to 1")
	flags.DurationVar(&agent.RestartEvery, "restart-every", 0, "time after which an agent restarts on its ring; 0 for never")
	flags.Uint64Var(&agent.Seed, "seed", 0, "`NUMBER` that determines the traffic; 0 for a random one")
	flags.BoolVar(&f.unread, "no-consumer", false, "don't consume the events")
	f.output = addOutput(cmd, "text", "json")
	complete(cmd, "layout", append(layouts(), "mixed"))
	complete(cmd, "scenario", scenarioNames())
}

func scenarioNames() (names []string) {
	for _, s := range simulate.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// scenarios lists the scenarios for the help.
func scenarios() string {
	var b strings.Builder
	for _, s := range simulate.Scenarios() {
		fmt.Fprintf(&b, "  %-15s %s\n", s.Name, s.Description)
	}
	return b.String()
}

// complete sets the values that come from the environment, the scenario and chance.
func (f *simulateFlags) complete(cmd *cobra.Command, w world) (err error) {
	agent := &f.fleet.Agent
	if !(f.errorRate >= 0 && f.errorRate <= 1) {
		return usagef("--error-rate %v: must be from 0 to 1", f.errorRate)
	}
	if f.fleet.Layouts, err = parseLayouts(f.layout); err != nil {
		return err
	}
	if f.fleet.Capacity, err = w.env.BufferSize(); err != nil {
		return err
	}
	if agent.RunInterval, err = w.env.RunInterval(); err != nil {
		return err
	}
	agent.Traffic = simulate.KVCache()
	agent.Traffic.ErrorShare = f.errorRate
	if f.scenario != "" {
		s, err := simulate.FindScenario(f.scenario)
		if err != nil {
			return usagef("--scenario: %w", err)
		}
		given := make(map[*pflag.Flag]string)
		cmd.Flags().Visit(func(flag *pflag.Flag) { given[flag] = flag.Value.String() })
		s.Set(&f.fleet)
		for flag, value := range given { // flags override the scenario
			if err := flag.Value.Set(value); err != nil {
				return err
			}
		}
	}
	if agent.Seed == 0 {
		agent.Seed = max(1, uint64(rand.Uint32())) // all JSON readers represent it exactly
	}
	return nil
}

func layouts() (names []string) {
	for _, l := range ringbuf.Layouts() {
		names = append(names, l.String())
	}
	return names
}

func parseLayouts(s string) ([]ringbuf.Layout, error) {
	if s == "mixed" {
		return ringbuf.Layouts(), nil
	}
	l, err := ringbuf.ParseLayout(s)
	if err != nil {
		return nil, usagef("--layout: %w, or mixed", err)
	}
	return []ringbuf.Layout{l}, nil
}

func (f *simulateFlags) run(ctx context.Context, w world) error {
	f.fleet.Journals = f.output.value == "json"
	fleet, err := simulate.NewFleet(f.fleet)
	if err != nil {
		return usageError{err}
	}
	if err := patherr.Directory(patherr.Rings, f.fleet.Dir); err != nil {
		return err
	}
	for _, a := range fleet.Agents() {
		if err := checkTakeover(w.proc, a.Path()); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
	if err := fleet.Start(); err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	consumed := make(chan error, 1)
	if f.unread {
		consumed <- nil
	} else {
		go func() { consumed <- consume(ended, &f.fleet, takeOverAfter) }()
	}
	start := time.Now()
	about := fmt.Sprintf("%v transfers/s each", f.fleet.Agent.Rate)
	if f.scenario != "" {
		about = "scenario " + f.scenario
	}
	fmt.Fprintf(w.err, "%s in %s, %s, layout %s, seed %d; press Ctrl-C to stop\n",
		plural(f.fleet.Agents, "agent", "agents"), f.fleet.Dir, about, f.layout, f.fleet.Agent.Seed)
	err = fleet.Run(ctx)
	end()
	err = errors.Join(err, <-consumed)
	report := fleet.Report()
	if f.output.value == "json" {
		return errors.Join(err, writeJSON(w.out, report))
	}
	elapsed := time.Since(start)
	rate := float64(report.Sum.Operations) / elapsed.Seconds() / float64(f.fleet.Agents)
	t := &report.Sum
	fmt.Fprintf(w.out, "Transfers: %s, failed: %s. Events written: %s, unread: %s, dropped in staging: %s, dropped because a ring was full: %s\n"+
		"%s transfers/s per agent over %v, seed %d\n",
		units.Count(t.Operations), units.Count(t.Failed), units.Count(t.Written), units.Count(uint64(t.Pending)),
		units.Count(t.DroppedStaging), units.Count(t.DroppedRing), units.Count(uint64(rate)), elapsed.Round(100*time.Millisecond), report.Seed)
	return err
}
