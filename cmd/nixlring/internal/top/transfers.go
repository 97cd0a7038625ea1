// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// transfers keeps the slowest transfers of all agents. Its methods are safe for
// concurrent use.
type transfers struct {
	now func() time.Time

	mu     sync.Mutex
	agents map[string]*slowest // by ID
}

func newTransfers(now func() time.Time) *transfers {
	return &transfers{now: now, agents: make(map[string]*slowest)}
}

// reset removes the transfers of an agent.
func (x *transfers) reset(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.agents, id)
}

// slowest returns the slowest transfers of an agent, slowest first.
func (x *transfers) slowest(id string) []Transfer {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a := x.agents[id]; a != nil {
		return a.list(x.now())
	}
	return nil
}

// watch returns a watch that adds every transfer whose events were all read.
func (x *transfers) watch() *engine.Watch {
	return &engine.Watch{Transfer: x.add}
}

// add adds a transfer of an agent.
func (x *transfers) add(agent *engine.Agent, t *tally.Transfer) {
	now := x.now()
	one := live.NewTransfer(t, now)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of(agent.ID).add(now, newTransfer(&one))
}

// of returns the transfers of an agent. The caller holds the lock.
func (x *transfers) of(id string) *slowest {
	a := x.agents[id]
	if a == nil {
		a = &slowest{}
		x.agents[id] = a
	}
	return a
}

func newTransfer(t *live.Transfer) Transfer {
	return Transfer{At: t.Time, Receive: t.Receive, Bytes: t.Bytes, Took: micros(t.Took), Post: micros(t.Post)}
}

func micros(n uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(n, most)) * time.Microsecond
}
