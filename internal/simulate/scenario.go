// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is a fleet that demonstrates a problem. Set applies it to a configuration, whose
// Traffic must be set. If the configuration has a Duration, phases end within it.
type Scenario struct {
	Name        string
	Description string // one line
	Set         func(*FleetConfig)
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario { return slices.Clone(scenarios) }

// FindScenario returns the scenario with a name.
func FindScenario(name string) (Scenario, error) {
	var names []string
	for _, s := range scenarios {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("unknown scenario %q: use one of %s", name, strings.Join(names, ", "))
}

var scenarios = []Scenario{
	{
		"steady", "constant traffic",
		func(c *FleetConfig) { c.Agent.Rate = 100 },
	},
	{
		"burst", "20 times as many transfers in the last 2 s of each 10 s",
		func(c *FleetConfig) {
			c.Agent.Rate = 50
			c.Agent.Bursts = Bursts{Phase: Phase{Every: 10 * time.Second, For: 2 * time.Second}.within(c.Agent.Duration), Factor: 20}
		},
	},
	{
		"prefill-decode", "pairs of agents: one writes the caches of prompts, one reads blocks",
		func(c *FleetConfig) {
			c.Agents, c.Prefix = 2, ""
			c.Agent.Rate = 100
			c.Roles = []Role{prefill(), decode()}
		},
	},
	{
		"failing-peer", "80% of the transfers fail in the last 5 s of each 20 s",
		func(c *FleetConfig) {
			c.Agent.Rate = 100
			c.Agent.Traffic.Outages = Phase{Every: 20 * time.Second, For: 5 * time.Second}.within(c.Agent.Duration)
			c.Agent.Traffic.OutageShare = 0.8
		},
	},
	{
		"overflow", "rings of 512 slots, which are too small: most events are lost",
		func(c *FleetConfig) {
			c.Agent.Rate = 4000
			c.Capacity = 512
		},
	},
	{
		"straggler", "one of 6 agents has a tenth of the others' bandwidth",
		func(c *FleetConfig) {
			c.Agents, c.Straggler = 6, 0.1
			c.Agent.Rate = 100
		},
	},
	{
		"half-speed", "one of 6 agents has half of the others' bandwidth",
		func(c *FleetConfig) {
			c.Agents, c.Straggler = 6, 0.5
			c.Agent.Rate = 100
		},
	},
	{
		"stalled", "one of 6 agents hangs in the last 4 min of each 5 min",
		func(c *FleetConfig) {
			c.Agents = 6
			c.Agent.Rate = 100
			c.Stalled = Phase{Every: 5 * time.Minute, For: 4 * time.Minute}.within(c.Agent.Duration)
		},
	},
	{
		"mixed-sizes", "small transfers wait behind large ones, 1 in 20",
		func(c *FleetConfig) {
			c.Agent.Rate = 400
			t := &c.Agent.Traffic
			t.MedianSize, t.SizeSpread, t.LargeShare = 64<<10, 0.5, 0.05
			t.Queue = true
		},
	},
	{
		"post-bound", "posting takes more than half of the time of a transfer",
		func(c *FleetConfig) {
			c.Agent.Rate = 100
			c.Agent.Traffic.PostPerBlock = time.Microsecond
		},
	},
	{
		"degrading-link", "bandwidth falls to a twentieth in the last 4 min of each 5 min",
		func(c *FleetConfig) {
			c.Agent.Rate = 100
			c.Agent.Traffic.Degrading = Phase{Every: 5 * time.Minute, For: 4 * time.Minute}.within(c.Agent.Duration)
			c.Agent.Traffic.DegradedTo = 0.05
		},
	},
}

// prefill returns the role of a server that computes prompts and writes their caches to the
// decoding server, one chunk at a time.
func prefill() Role {
	t := KVCache()
	t.WriteShare = 1
	return Role{Name: "prefill", Traffic: t, Rate: 1}
}

// decode returns the role of a server that reads single blocks of offloaded prefixes: its
// transfers are more frequent and much smaller.
func decode() Role {
	t := KVCache()
	t.WriteShare, t.MedianSize, t.SizeSpread = 0.05, 256<<10, 0.8
	return Role{Name: "decode", Traffic: t, Rate: 3}
}
