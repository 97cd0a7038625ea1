package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is a fleet that shows something, but for where it lives, how many
// agents it has and what is drawn for them. Set takes a Duration that is set
// already into account: what comes from time to time comes within it.
type Scenario struct {
	Name string
	Does string // in a line
	Set  func(*FleetConfig)
}

// Scenarios are the scenarios there are.
func Scenarios() []Scenario { return slices.Clone(scenarios) }

// FindScenario is the scenario of a name.
func FindScenario(name string) (Scenario, error) {
	var names []string
	for _, s := range scenarios {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("unknown scenario %q: it is one of %s", name, strings.Join(names, ", "))
}

var scenarios = []Scenario{
	{
		"steady", "the same traffic all the time",
		func(c *FleetConfig) { c.Agent.Rate = 100 },
	},
	{
		"burst", "a calm, and 20 times as much in the last 2 s of each 10 s",
		func(c *FleetConfig) {
			c.Agent.Rate = 50
			c.Agent.Bursts = Bursts{Phase: Phase{Every: 10 * time.Second, For: 2 * time.Second}.within(c.Agent.Duration), Factor: 20}
		},
	},
	{
		"prefill-decode", "pairs: one writes whole prompts' caches, one fetches blocks back",
		func(c *FleetConfig) {
			c.Agents, c.Prefix = 2, ""
			c.Agent.Rate = 100
			c.Roles = []Role{prefill(), decode()}
		},
	},
	{
		"failing-peer", "a peer that is gone for the last 5 s of each 20 s: 80 of 100 transfers fail then",
		func(c *FleetConfig) {
			c.Agent.Rate = 100
			c.Agent.Traffic.Outages = Phase{Every: 20 * time.Second, For: 5 * time.Second}.within(c.Agent.Duration)
			c.Agent.Traffic.OutageShare = 0.8
		},
	},
	{
		"overflow", "more than a ring of 512 slots takes in a run interval: most is lost",
		func(c *FleetConfig) {
			c.Agent.Rate = 4000
			c.Capacity = 512
		},
	},
}

// prefill is a server that computes prompts and writes their caches to the
// decoding one, a chunk at a time.
func prefill() Role {
	t := KVCache()
	t.WriteShare = 1
	return Role{Name: "prefill", Traffic: t, Rate: 1}
}

// decode is a server that fetches single blocks of prefixes back that it has
// moved out: more transfers, and far smaller ones.
func decode() Role {
	t := KVCache()
	t.WriteShare, t.MedianSize, t.SizeSpread = 0.05, 256<<10, 0.8
	return Role{Name: "decode", Traffic: t, Rate: 3}
}
