// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Alive is whether the agent of a ring, or the process of a store, is running.
type Alive uint8

// The values of [Alive].
const (
	Unknown Alive = iota
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

// Bool returns the value for JSON: nil if it is unknown.
func (a Alive) Bool() *bool {
	if a == Unknown {
		return nil
	}
	yes := a == Yes
	return &yes
}

// Attended is whether any process, agent or consumer, has a ring open for writing.
type Attended struct {
	Open  bool
	Known bool // false without permission, on overlayfs, or if the file system doesn't support leases
}

// Attend asks the kernel whether a ring is open for writing.
func Attend(path string) Attended {
	f, err := files.Open(path, os.O_RDONLY)
	if err != nil {
		return Attended{}
	}
	defer f.Close()
	open, err := files.LeaseRefused(f, false)
	return Attended{Open: open, Known: err == nil}
}

// Settles reports whether the kernel's answer is sufficient. Otherwise, the process that
// has the ring open may be a consumer, so the processes must be inspected.
func (a Attended) Settles() bool { return a.Known && !a.Open }

// Alive returns whether the ring's agent is running. A consumer that has the ring open
// doesn't count as its agent.
func (u *Users) Alive(a Attended) Alive {
	switch {
	case a.Settles():
		return No
	case u == nil:
		return Unknown
	case u.Unlisted && len(u.Writers()) == 1: // the agent or a consumer
		return Unknown
	case len(u.Writers()) > 0:
		return Yes
	case u.Deserted() && u.Consumer != nil:
		return No
	default: // a process that can't be inspected may have it open; on overlayfs, mappings may show another inode
		return Unknown
	}
}
