// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// exit is what is known about the exit of an agent's process. The kernel and discovery
// report it late, and possibly when the next process already writes to the ring, so only
// what the ring shows afterwards counts.
type exit struct {
	up   Up
	gone time.Time // since when no process needs the ring; zero if one does

	emptied  bool // the ring was drained since up became UpNo
	complete bool // after that, a drain found no more events

	// unread is since when the ring may, although complete, hold events that can't be
	// distinguished from a restart yet; zero if it doesn't.
	unread time.Time
}

// attached starts over, because the agent has another ring.
func (e *exit) attached() {
	e.up, e.gone, e.complete = UpUnknown, time.Time{}, false
}

// detached ends what the kernel knows. Whether all events were counted remains of
// interest when the agent starts again.
func (e *exit) detached() { e.up = UpUnknown }

// running notes that a process has the ring open.
func (e *exit) running() {
	e.up, e.gone, e.complete = UpYes, time.Time{}, false
}

// exited notes that no process has the ring open.
func (e *exit) exited() {
	e.emptied = e.emptied && e.up == UpNo
	e.up = UpNo
}

// unknown notes that the kernel can't tell who has the ring open. Discovery may know
// better.
func (e *exit) unknown() {
	if e.gone.IsZero() {
		e.up = UpUnknown
	}
}

// unneeded notes that no process needs the ring.
func (e *exit) unneeded(now time.Time) {
	if e.gone.IsZero() {
		e.gone = now
	}
	e.exited()
}

// drained updates e after a drain that found a number of events and left the ring empty
// or not. Events that were written after the ring was empty show that another process
// runs by now.
func (e *exit) drained(events int, empty bool, now time.Time) {
	if e.up != UpNo {
		return
	}
	switch {
	case events == 0 && empty:
		e.complete, e.unread = true, time.Time{}
	case events == 0:
		if !e.complete || e.unread.IsZero() {
			e.unread = now
		}
		e.complete = true
	case e.emptied && e.unread.IsZero():
		e.up, e.gone = UpUnknown, time.Time{} // until the kernel is asked again
	}
	e.emptied = events < maxPass
}

// wrote notes that a process has written events, or has reset the ring.
func (e *exit) wrote() { e.complete = false }

// lossless reports whether the agent can't have written events that weren't counted.
func (e *exit) lossless() bool { return e.complete && e.unread.IsZero() }

const (
	// goneWait is longer than it can take to read the last events of a ring. A
	// position that has just wrapped looks like a restart for a second.
	goneWait = 2 * time.Second
	// unreadWait is how long a ring stays open, and its agent isn't retired, whose last
	// events may be part of a restart.
	unreadWait = 3 * goneWait
)

// waits reports whether the ring must stay open, because a process needs it or events may
// still become readable.
func (e *exit) waits(now time.Time) bool {
	return e.gone.IsZero() || now.Sub(e.gone) < goneWait || e.mayRead(now)
}

// mayRead reports whether events may still become readable. They would be lost if the agent
// were retired.
func (e *exit) mayRead(now time.Time) bool {
	return !e.unread.IsZero() && now.Sub(e.unread) < unreadWait
}
