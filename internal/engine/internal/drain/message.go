// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "github.com/nixl-otel/nixl-otel/ringbuf"

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
	// as far as its source knows. The source opens the ring again later, because the other
	// agent may exit.
	Refuse(a Agent, r *ringbuf.Reader)
}

// Opened reports that a ring was opened and locked. It passes the reader to the owner. If
// the agent already has a ring, either another file has replaced it, or the agent has
// restarted with a ring at another path.
type Opened struct {
	Agent  Agent
	Reader *ringbuf.Reader
	From   Source
}

// Attributed reports what is known about an agent that was opened without attributes of its
// process.
type Attributed struct {
	Agent  Agent
	Reader *ringbuf.Reader
}

// Removed reports that an agent's path no longer has a file. The agent may still write to
// the open ring.
type Removed struct{ ID string }

// Touched reports that the file of an agent's ring has changed. The ring is drained
// immediately, so that a restart is detected sooner.
type Touched struct{ ID string }

// Gone reports that a ring is no longer needed: its container was removed, or its
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
