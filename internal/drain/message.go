package drain

import (
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Agent identifies an agent by where its ring is.
type Agent struct {
	Name string // of the ring's file, relative to Dir
	Dir  string // the telemetry directory
	Path string // of the ring; the key of the agent everywhere
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
}

// Message is something that an owner is told. The types in this file are what
// a Source sends.
type Message interface {
	apply(o *owner, now time.Time)
}

// Opened says that a ring was opened and locked. The reader belongs to the
// owner from then on. If the agent has a ring already, another file has taken
// its name.
type Opened struct {
	Agent  Agent
	Reader *ringbuf.Reader
	From   Source
}

// Removed says that an agent's path has no file any more. The agent may still
// write to the ring that is open.
type Removed struct{ Path string }

// Touched says that the file of an agent's ring has changed. It is drained at
// once: if its agent restarts, the ring is opened again sooner.
type Touched struct{ Path string }

// Attended is the kernel's answer to the question whether another process has
// the ring open.
type Attended struct {
	Path   string
	Reader *ringbuf.Reader
	Open   bool
	Known  bool // false if the kernel can't tell
}
