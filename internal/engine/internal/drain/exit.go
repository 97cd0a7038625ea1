// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// exit is what is known about the exit of an agent's process. The kernel and discovery
// report it late, and possibly when the next process already writes to the ring, so only
// what the ring shows afterwards counts.
type exit struct {
	up    Up
	gone  time.Time // since when no process needs the ring; zero if one does
	empty time.Time // since when, while up is UpNo, the ring has been empty; zero if it isn't
}

const (
	// goneWait is longer than it can take to read the last events of a ring. A
	// position that has just wrapped looks like a restart for 20 ms.
	goneWait = 2 * time.Second
	// unreadWait is when a ring that no process needs is closed although its last events may be
	// part of a restart.
	unreadWait = 3 * goneWait
)

// set sets what is known, unless it is known already.
func (e *exit) set(up Up) {
	if e.up != up {
		e.up, e.empty = up, time.Time{}
	}
	if up == UpYes {
		e.gone = time.Time{}
	}
}

// unneeded notes that no process needs the ring.
func (e *exit) unneeded(now time.Time) {
	if e.gone.IsZero() {
		e.gone = now
	}
	e.set(UpNo)
}

// drained updates e after a drain that found a number of events and left the ring empty
// or not. Events that were written after the ring was empty show that another process
// runs by now.
func (e *exit) drained(events int, empty bool, now time.Time) {
	switch {
	case e.up != UpNo:
	case events > 0 && !e.empty.IsZero():
		*e = exit{} // until the kernel is asked again
	case empty && e.empty.IsZero():
		e.empty = now
	}
}

// final reports whether the agent can't have written events that weren't counted.
func (e *exit) final() bool { return !e.empty.IsZero() }
