// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Agent identifies an agent and says where its ring is. An agent that restarts
// may have another ring, at another path, under the same ID.
type Agent struct {
	// ID is the key of the agent everywhere, in checkpoints and in its
	// service.instance.id too: the path of its ring, unless its source knows
	// better. It contains no NUL.
	ID   string
	Name string // of the ring's file, relative to Dir
	Dir  string // the telemetry directory, as the agent sees it
	Path string // of the ring, as this process sees it
	// Resource is what is known of the agent's process, pod and container.
	Resource attribute.Set
}

// Source opens and closes rings. Its methods only pass the request on: they
// never block, and the result arrives as a message.
type Source interface {
	// Close unmaps and closes a ring that its owner has given up.
	Close(r *ringbuf.Reader)
	// Reopen closes r, unless it is nil, and opens the agent's ring again as
	// soon as its file is a ring.
	Reopen(a Agent, r *ringbuf.Reader)
	// Retire closes r, unless it is nil. The agent has exited, so the file is
	// opened again only when it changes.
	Retire(a Agent, r *ringbuf.Reader)
	// Reject closes a ring whose agent has the ID of another one that runs. It is
	// opened again later: the other may exit.
	Reject(a Agent, r *ringbuf.Reader)
}

// Message is something that an owner is told. The types in this file are what
// a Source sends.
type Message interface {
	apply(o *owner, now time.Time)
}

// Opened says that a ring was opened and locked. The reader belongs to the
// owner from then on. If the agent has a ring already, another file has taken
// its name, or the agent has restarted with a ring elsewhere.
type Opened struct {
	Agent  Agent
	Reader *ringbuf.Reader
	From   Source

	gone bool // the ring's file is, since it was opened
}

// Removed says that an agent's path has no file any more. The agent may still
// write to the ring that is open.
type Removed struct{ ID string }

// Touched says that the file of an agent's ring has changed. It is drained at
// once: if its agent restarts, the ring is opened again sooner.
type Touched struct{ ID string }

// Gone says that no process needs a ring any more: its container was removed, or its
// agent has exited and an open ring would keep its volume in use. The ring is closed
// as soon as its events are counted and, with a store, stored, unless another process
// opens it before.
type Gone struct {
	ID     string
	Reader *ringbuf.Reader
}

// Attended is the kernel's answer to the question whether another process has
// the ring open.
type Attended struct {
	ID     string
	Reader *ringbuf.Reader
	Open   bool
	Known  bool // false if the kernel can't tell
}
