// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"cmp"
	"slices"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// agentTransfers is the transfers of an agent for the next frame of a client.
type agentTransfers struct {
	agent   engine.Agent
	list    []live.Transfer // the slowest first
	omitted uint64
}

const (
	// maxTransfers limits the transfers of an agent in a frame, and maxWatched the agents
	// with transfers.
	maxTransfers = 1000
	maxWatched   = 4096
)

// setWatch begins to watch transfers, or ends it.
func (c *socketClient) setWatch(conditions *live.Conditions) {
	switch {
	case conditions == nil && c.watch == nil, conditions != nil && c.watch != nil && *conditions == c.conditions:
		return
	case c.watch != nil:
		c.engine.Unwatch(c.watch)
		c.watch = nil
	}
	c.transfersMu.Lock()
	defer c.transfersMu.Unlock()
	clear(c.transfers)
	if conditions == nil {
		return
	}
	c.conditions = *conditions
	most := min(max(conditions.Most, 1), maxTransfers)
	slow := conditions.Slow()
	c.watch = &engine.Watch{Transfer: func(a *engine.Agent, t *tally.Transfer) {
		if slow.Check(t) {
			c.transfer(*a, t, most)
		}
	}}
	c.engine.Watch(c.watch)
}

// transfer adds a transfer. Draining waits for it.
func (c *socketClient) transfer(a engine.Agent, t *tally.Transfer, most int) {
	c.transfersMu.Lock()
	defer c.transfersMu.Unlock()
	one := c.transfers[a.ID]
	if one == nil {
		if len(c.transfers) >= maxWatched {
			return
		}
		one = &agentTransfers{agent: a}
		c.transfers[a.ID] = one
	}
	if len(one.list) == most {
		one.omitted++
		if t.Duration <= one.list[most-1].Took {
			return
		}
		one.list = one.list[:most-1]
	}
	at, _ := slices.BinarySearchFunc(one.list, t.Duration, func(l live.Transfer, took uint64) int { return cmp.Compare(took, l.Took) })
	one.list = slices.Insert(one.list, at, live.NewTransfer(t, c.now()))
}

// addTransfers adds the transfers since the previous frame.
func (c *socketClient) addTransfers(f *live.Frame) {
	c.transfersMu.Lock()
	found := c.transfers
	c.transfers = make(map[string]*agentTransfers)
	c.transfersMu.Unlock()
	for i := range f.Agents {
		if from := found[f.Agents[i].ID]; from != nil {
			from.addTo(&f.Agents[i])
			delete(found, f.Agents[i].ID)
		}
	}
	for _, from := range found { // of agents without totals
		a := live.Identify(&from.agent)
		from.addTo(&a)
		f.Agents = append(f.Agents, a)
	}
	slices.SortFunc(f.Agents, func(a, b live.Agent) int { return cmp.Compare(a.ID, b.ID) })
}

func (t *agentTransfers) addTo(a *live.Agent) {
	slices.SortStableFunc(t.list, func(x, y live.Transfer) int { return x.Time.Compare(y.Time) })
	a.Transfers, a.Omitted = t.list, t.omitted
}
