// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Agent identifies an agent and locates its ring. An agent that restarts may have
// another ring, at another path, under the same ID.
type Agent struct {
	// ID identifies the agent everywhere, including in checkpoints and in its
	// service.instance.id. It is the path of its ring unless its source has a more
	// stable one. It contains no NUL.
	ID   string
	Name string // name of the ring's file, relative to Dir
	Dir  string // the telemetry directory, as the agent sees it
	Path string // path of the ring, as this process sees it
	// Resource describes the agent. It contains what identifies the agent, such as its
	// pod.
	Resource attribute.Set
	// Process describes the agent's process, and its container unless that identifies
	// the agent. It changes when the agent restarts.
	Process attribute.Set
	Holder  Holder
	// MaxNames limits the event names of all agents of Holder together; 0 for no limit.
	MaxNames int
}

// Source opens and closes rings. Its methods only forward the request: they never
// block, and the result arrives as a message.
type Source interface {
	// Close unmaps and closes a ring.
	Close(r *ringbuf.Reader)
	// Reopen closes r, unless it is nil, and opens the agent's ring again as soon as
	// its file is a valid ring.
	Reopen(a Agent, r *ringbuf.Reader)
	// Retire closes r, unless it is nil. The agent has exited, so the source opens
	// the file again only when it changes.
	Retire(a Agent, r *ringbuf.Reader)
	// Refuse closes a ring whose agent has the same ID as another agent, which is running
	// as far as its source knows. The source opens the ring again with another ID, or
	// later, because the other agent may exit.
	Refuse(a Agent, other Running, r *ringbuf.Reader)
	// Probe sends [Attended] for all open rings, and then calls done.
	Probe(done func())
}

// Running describes an agent that is running.
type Running struct {
	Agent  Agent
	Source Source
}

// Message is a message to an owner. A Source sends the types in this file.
type Message interface {
	apply(o *owner, now time.Time)
}

// Opened reports that a ring was opened and locked. It passes the reader to the owner. If
// the agent already has a ring, either another file has replaced it, or the agent has
// restarted with a ring at another path.
type Opened struct {
	Agent  Agent
	Reader *ringbuf.Reader
	From   Source

	gone     bool      // a Gone message has arrived
	attended *Attended // the last such message, if the ring waits for its checkpoint
	next     *Opened   // of the file that has replaced the ring while it waits
}

// Removed reports that an agent's path no longer has a file. The agent may still write to
// the open ring.
type Removed struct{ ID string }

// Touched reports that the file of an agent's ring has changed. The ring is drained
// immediately, so that a restart is detected sooner.
type Touched struct{ ID string }

// Gone reports that no process needs a ring any more: its container was removed, or its
// agent has exited and the open ring keeps a volume in use. The ring is closed as soon as
// its events are counted and, with a store, stored, unless a process opens it first.
type Gone struct {
	ID     string
	Reader *ringbuf.Reader
}

// Crowded reports that a number of rings were refused because of the limit on agents, or
// because of the budget of their holder. Agents that have exited give way to them.
type Crowded struct {
	Rings      int
	Holder     Holder
	OverBudget bool // only agents of the holder can give way
}

// Attended reports whether another process has the ring open.
type Attended struct {
	ID     string
	Reader *ringbuf.Reader
	Open   bool
	Known  bool // whether the kernel could determine Open
}
