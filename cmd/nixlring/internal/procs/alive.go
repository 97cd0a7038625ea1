// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Alive is whether a ring's agent is alive.
type Alive uint8

// The values of [Alive].
const (
	Unknown Alive = iota // it can't be told from here
	No
	Yes
)

// String returns a word for a table.
func (a Alive) String() string {
	switch a {
	case No:
		return "no"
	case Yes:
		return "yes"
	default:
		return "?"
	}
}

// Bool returns nil if it isn't known, for JSON.
func (a Alive) Bool() *bool {
	if a == Unknown {
		return nil
	}
	yes := a == Yes
	return &yes
}

// Attended is the kernel's answer to whether any process, agent or consumer, has
// a ring open for writing.
type Attended struct {
	Open  bool
	Known bool // false if this user or the file system can't ask
}

// Attend asks the kernel.
func Attend(path string) Attended {
	unattended, err := ringbuf.Unattended(path)
	return Attended{Open: !unattended && err == nil, Known: err == nil}
}

// Settles reports whether the kernel's answer is enough. Otherwise a consumer may
// be the one that has the ring open, and the processes must be looked at.
func (a Attended) Settles() bool { return a.Known && !a.Open }

// Alive reports whether the ring's agent is alive. A consumer that has the ring
// open isn't its agent.
func (u *Users) Alive(a Attended) Alive {
	switch {
	case a.Settles():
		return No
	case u == nil:
		return Unknown
	case len(u.Writers()) > 0:
		return Yes
	case u.Deserted() && (u.Consumer != nil || !a.Known):
		return No
	default: // somebody has it open who can't be seen
		return Unknown
	}
}
