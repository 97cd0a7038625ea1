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
