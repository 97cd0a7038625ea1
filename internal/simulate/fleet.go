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

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// FleetConfig is a number of agents in one directory. They are named Prefix-0,
// Prefix-1 and so on, and differ in what is drawn for them.
//
// With Roles they are named after their role: Prefix-prefill-0, Prefix-decode-0,
// Prefix-prefill-1 and so on, without Prefix and its dash where it is empty.
type FleetConfig struct {
	Dir    string
	Prefix string // "sim" if empty and there are no Roles
	Agents int
	Roles  []Role // dealt out to the agents in turn

	// Straggler is the bandwidth of the agent in the middle, relative to that of
	// the others. There is no straggler if it is 0.
	Straggler float64

	// Layouts are dealt out to the agents in turn; an agent that restarts
	// takes the one after its own, as if it had been upgraded. All V4 if empty.
	Layouts  []ringbuf.Layout
	Capacity int // DefaultCapacity if 0

	// Agent is what all of them have in common. Its Path, Lives and Stream
	// are not looked at.
	Agent Config
}

// Role is what some agents of a fleet do otherwise than Agent says. Errors and
// outages are those of Agent.
type Role struct {
	Name    string
	Traffic Traffic
	Rate    float64 // times that of Agent
}

// Fleet is a number of agents.
type Fleet struct {
	agents   []*Agent
	seed     uint64
	interval time.Duration
}

// NewFleet makes the agents; they haven't started then.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if cfg.Agents < 1 {
		return nil, fmt.Errorf("simulate %d agents: at least one is needed", cfg.Agents)
	}
	if !(cfg.Straggler >= 0 && cfg.Straggler <= 1) {
		return nil, fmt.Errorf("a straggler with a bandwidth of %v of the others: it must be from 0 to 1", cfg.Straggler)
	}
	if cfg.Prefix == "" && len(cfg.Roles) == 0 {
		cfg.Prefix = "sim"
	}
	if len(cfg.Layouts) == 0 {
		cfg.Layouts = []ringbuf.Layout{ringbuf.V4}
	}
	f := &Fleet{seed: cfg.Agent.Seed}
	for i := range cfg.Agents {
		c := cfg.Agent
		c.Path = filepath.Join(cfg.Dir, cfg.name(i))
		if n := len(cfg.Roles); n > 0 {
			role := &cfg.Roles[i%n]
			common := c.Traffic
			c.Traffic, c.Rate = role.Traffic, c.Rate*role.Rate
			c.Traffic.ErrorShare, c.Traffic.Outages, c.Traffic.OutageShare = common.ErrorShare, common.Outages, common.OutageShare
		}
		if cfg.Straggler > 0 && i == cfg.Agents/2 {
			c.Traffic.Bandwidth *= cfg.Straggler
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

// name is that of an agent, by its number.
func (c *FleetConfig) name(i int) string {
	n := len(c.Roles)
	if n == 0 {
		return c.Prefix + "-" + strconv.Itoa(i)
	}
	name := c.Roles[i%n].Name + "-" + strconv.Itoa(i/n)
	if c.Prefix != "" {
		name = c.Prefix + "-" + name
	}
	return name
}

// Agents are the fleet's agents, by number.
func (f *Fleet) Agents() []*Agent { return f.agents }

// Start starts all agents. Where one can't start, those before it are stopped.
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

// Interval lets one run interval pass for all agents.
func (f *Fleet) Interval() error {
	var errs []error
	for _, a := range f.agents {
		if !a.Done() {
			errs = append(errs, a.Interval())
		}
	}
	return errors.Join(errs...)
}

// Done says whether all agents are done.
func (f *Fleet) Done() bool {
	for _, a := range f.agents {
		if !a.Done() {
			return false
		}
	}
	return true
}

// Run runs all agents in real time until they are done or ctx is, and stops
// them. Their flushes are spread over the run interval. An agent that fails
// doesn't keep the others from going on; the error comes at the end.
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

// Remove deletes the rings of agents that have stopped.
func (f *Fleet) Remove() error {
	var errs []error
	for _, a := range f.agents {
		errs = append(errs, a.Remove())
	}
	return errors.Join(errs...)
}

// Report is what a fleet did. The field names of its JSON are stable.
type Report struct {
	Seed   uint64            `json:"seed"`
	Bounds Bounds            `json:"bounds"`
	Agents map[string]Totals `json:"agents"` // by the path of the ring
	Sum    Totals            `json:"sum"`
}

// Bounds are the upper bounds of the buckets of distributions, those included
// that are equal to one. The last bucket has none.
type Bounds struct {
	Bytes  []uint64 `json:"size_bytes"`
	Micros []uint64 `json:"duration_us"`
	Rate   []uint64 `json:"throughput_bytes_per_second"`
}

// Report is what the fleet did by now.
func (f *Fleet) Report() Report {
	r := Report{Seed: f.seed, Bounds: bucketBounds(), Agents: make(map[string]Totals, len(f.agents))}
	all := make([]Totals, len(f.agents))
	for i, a := range f.agents {
		all[i] = a.Totals()
		r.Agents[a.Path()] = all[i]
	}
	r.Sum = Sum(all...)
	return r
}
