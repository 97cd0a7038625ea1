// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FleetConfig configures several agents in one directory. They are named Prefix-0, Prefix-1 and
// so on, and have different random numbers.
type FleetConfig struct {
	Dir    string
	Prefix string // default: "sim"
	Agents int

	// Straggler is the bandwidth of the agent in the middle, relative to the other
	// agents. 0 means that there is no straggler.
	Straggler float64

	// In a Stalled phase, the agent in the middle completes no transfers.
	Stalled Phase

	// Layouts are assigned to the agents cyclically. An agent that restarts uses the
	// next layout, as if it had been upgraded. The default is V4.
	Layouts  []ringbuf.Layout
	Capacity int // default: DefaultCapacity

	// Agent is the common configuration. Its Path, Lives, Stream and Journal are ignored.
	Agent Config

	// Journals gives each agent a journal.
	Journals bool
}

// Fleet is a number of agents.
type Fleet struct {
	agents   []*Agent
	seed     uint64
	interval time.Duration
}

// NewFleet returns a fleet whose agents haven't started yet.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if cfg.Agents < 1 {
		return nil, fmt.Errorf("simulate %d agents: at least one is required", cfg.Agents)
	}
	if !(cfg.Straggler >= 0 && cfg.Straggler <= 1) {
		return nil, fmt.Errorf("relative bandwidth of the straggler is %v: it must be from 0 to 1", cfg.Straggler)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "sim"
	}
	if len(cfg.Layouts) == 0 {
		cfg.Layouts = []ringbuf.Layout{ringbuf.V4}
	}
	f := &Fleet{seed: cfg.Agent.Seed}
	for i := range cfg.Agents {
		c := cfg.Agent
		c.Path = filepath.Join(cfg.Dir, cfg.Prefix+"-"+strconv.Itoa(i))
		c.Journal = nil
		if cfg.Journals {
			c.Journal = oracle.New()
		}
		if cfg.Straggler > 0 && i == cfg.Agents/2 {
			c.Traffic.Bandwidth *= cfg.Straggler
		}
		if cfg.Stalled.Every > 0 && i == cfg.Agents/2 {
			c.Stalled = cfg.Stalled
		}
		c.Stream = uint64(i)
		c.Lives = make([]Life, len(cfg.Layouts))
		for n := range c.Lives {
			c.Lives[n] = Life{Layout: cfg.Layouts[(i+n)%len(cfg.Layouts)], Capacity: cfg.Capacity}
		}
		a, err := New(c)
		if err != nil {
			return nil, err
		}
		f.interval = a.cfg.RunInterval
		f.agents = append(f.agents, a)
	}
	return f, nil
}

// Agents returns the fleet's agents, in order.
func (f *Fleet) Agents() []*Agent { return f.agents }

// Start starts all agents. If one can't start, it stops those before it.
func (f *Fleet) Start() error {
	for i, a := range f.agents {
		if err := a.Start(); err != nil {
			for _, b := range f.agents[:i] {
				err = errors.Join(err, b.Stop())
			}
			return err
		}
	}
	return nil
}

// Interval advances all agents by one run interval.
func (f *Fleet) Interval() error {
	var errs []error
	for _, a := range f.agents {
		if !a.Done() {
			errs = append(errs, a.Interval())
		}
	}
	return errors.Join(errs...)
}

// Done reports whether all agents are done.
func (f *Fleet) Done() bool {
	for _, a := range f.agents {
		if !a.Done() {
			return false
		}
	}
	return true
}

// Run runs all agents in real time until they are done or ctx ends, and then stops them. Their
// flushes are spread over the run interval. If an agent fails, the others continue, and Run
// returns the error at the end.
func (f *Fleet) Run(ctx context.Context) error {
	errs := make([]error, len(f.agents))
	var wg sync.WaitGroup
	for i, a := range f.agents {
		wg.Go(func() {
			errs[i] = a.Run(ctx, f.interval*time.Duration(i)/time.Duration(len(f.agents)))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Stop stops all agents.
func (f *Fleet) Stop() error {
	var errs []error
	for _, a := range f.agents {
		errs = append(errs, a.Stop())
	}
	return errors.Join(errs...)
}

// Report contains the totals of a fleet. The field names of its JSON are stable.
type Report struct {
	Seed   uint64            `json:"seed"`
	Agents map[string]Totals `json:"agents"` // by the path of the ring
	Sum    Totals            `json:"sum"`
}

// Report returns the totals of the fleet so far.
func (f *Fleet) Report() Report {
	r := Report{Seed: f.seed, Agents: make(map[string]Totals, len(f.agents))}
	all := make([]Totals, len(f.agents))
	for i, a := range f.agents {
		all[i] = a.Totals()
		r.Agents[a.Path()] = all[i]
	}
	r.Sum = Sum(all...)
	return r
}
