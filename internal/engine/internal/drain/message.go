// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"sync/atomic"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

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
	// Answer answers an offer; see [Offer]. a has the ID under which the owner keeps the ring. If refused
	// isn't nil, the owner doesn't keep r, so the source closes it, unless it is nil, and may offer the ring
	// again later, depending on the reason.
	Answer(a Agent, r *ringbuf.Reader, refused error)
}

// Attributed reports what a later search has found out about the agent of an open ring.
type Attributed struct {
	Was    string // ID of the agent so far
	Agent  Agent
	Reader *ringbuf.Reader
}

// Gone reports that a ring is no longer needed: its container was removed, or its
// agent has exited and the open ring keeps a volume in use. The ring is closed as soon as
// its events are counted and, with a store, stored, unless a process opens it first.
type Gone struct {
	ID     string
	Reader *ringbuf.Reader
}

// Attended reports whether another process has the ring open.
type Attended struct {
	ID     string
	Reader *ringbuf.Reader
	Up     Up
	// Pending is cleared when the owner receives the message, so that the messages to an owner that hangs don't
	// accumulate. It may be nil.
	Pending *atomic.Bool
}
