// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// transfers keeps the slowest transfers of all agents. Its methods are safe for
// concurrent use.
type transfers struct {
	now func() time.Time

	mu     sync.Mutex
	agents map[string]*agentTransfers // by path
}

// agentTransfers keeps the slowest transfers of one agent.
type agentTransfers struct {
	slowest slowest
	open    Transfer // the transfer whose events are being read
	step    int      // number of its events read so far
}

func newTransfers(now func() time.Time) *transfers {
	return &transfers{now: now, agents: make(map[string]*agentTransfers)}
}

// reset removes the transfers of an agent.
func (x *transfers) reset(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.agents, path)
}

// slowest returns the slowest transfers of an agent, slowest first.
func (x *transfers) slowest(path string) []Transfer {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a := x.agents[path]; a != nil {
		return a.slowest.list(x.now())
	}
	return nil
}

// tap adds events of an agent, in the order of the ring.
func (x *transfers) tap(agent drain.Agent, b ringbuf.Batch) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.agents[agent.Path]
	if a == nil {
		a = &agentTransfers{}
		x.agents[agent.Path] = a
	}
	if events := b.Typed(); events != nil { // current layouts
		for i := range events {
			if a.add(events[i].Type, events[i].Value) {
				a.open.At = now
				a.slowest.add(now, a.open)
			}
		}
		return
	}
	for i := range b.Len() {
		e := b.Event(i)
		if t, ok := typeOf(&e); ok && a.add(t, e.Value) {
			a.open.At = now
			if e.TimestampMicros > 0 {
				a.open.At = time.UnixMicro(int64(e.TimestampMicros))
			}
			a.slowest.add(now, a.open)
		}
	}
}

// add adds an event, in the order in which agents write them. It reports whether the event
// completes a transfer. Events that don't belong to transfers are ignored.
func (a *agentTransfers) add(t ringbuf.Type, value uint64) (complete bool) {
	var step int
	switch t {
	case ringbuf.TypeXferPostTime:
		a.open = Transfer{Post: micros(value)}
		a.step = 1
		return false
	case ringbuf.TypeXferTime:
		step, a.open.Took = 1, micros(value)
	case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		step, a.open.Bytes, a.open.Receive = 2, value, t == ringbuf.TypeRxBytes
	case ringbuf.TypeTxRequests, ringbuf.TypeRxRequests:
		step = 3
		if a.open.Receive != (t == ringbuf.TypeRxRequests) {
			a.step = 0
		}
	default:
		return false
	}
	if a.step != step { // an event is missing
		a.step = 0
		return false
	}
	a.step = (step + 1) % 4
	return a.step == 0
}

func micros(n uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(n, most)) * time.Microsecond
}

// typeOf returns the type of an event. It also supports layouts with names instead of types.
func typeOf(e *ringbuf.Event) (ringbuf.Type, bool) {
	if !e.Named {
		return e.Type, true
	}
	t, ok := typesByName[e.Name]
	return t, ok
}

var typesByName = func() map[ringbuf.Name]ringbuf.Type {
	types := make(map[ringbuf.Name]ringbuf.Type)
	for t := range ringbuf.Type(ringbuf.Types) {
		types[ringbuf.MakeName(t.LegacyName())] = t
	}
	return types
}()
