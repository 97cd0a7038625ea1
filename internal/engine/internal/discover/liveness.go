// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

const (
	// usersInterval is the minimum interval between two searches for the users of rings, and
	// usersShare the minimum interval as a multiple of a search's duration. A search reads
	// the mappings of all processes, which takes up to a second on a large machine.
	usersInterval, usersShare = 2 * time.Second, 100
	// usersLife is the time after which a ring is searched for again if no agent was found,
	// even if its file is unchanged.
	usersLife = time.Minute
)

// liveness determines whether rings have an agent. The kernel refuses a lease on a ring that
// any process has open, including observers and tools. Only an agent or a consumer has it
// mapped for writing, and consumers of this project lock it. One search finds the processes
// of all rings in question. liveness is safe for concurrent use.
type liveness struct {
	proc string

	mu        sync.Mutex
	rings     map[files.ID]*use
	searching bool
	next      time.Time // when a search may begin
}

// use is what is known about the processes of a ring.
type use struct {
	wanted  bool           // the next search includes the ring
	agents  []process.User // processes that write to the ring
	decided bool           // if there are no agents: the search can't have missed one
	found   time.Time      // start of the search; zero if there was none
	info    files.Info
}

func newLiveness(proc string) *liveness {
	return &liveness{proc: proc, rings: make(map[files.ID]*use)}
}

// isAbandoned reports whether a ring that some process has open certainly has no agent. The
// first call only requests a search. An agent that starts changes the file, and info with it.
func (l *liveness) isAbandoned(id files.ID, info files.Info, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.rings[id]
	if u == nil {
		u = &use{}
		l.rings[id] = u
	}
	if !u.info.Same(info) { // an agent may have started since the last search
		*u = use{info: info}
	}
	switch {
	case slices.ContainsFunc(u.agents, func(a process.User) bool { return a.Runs(l.proc) }):
		return false
	case u.found.IsZero(), len(u.agents) > 0:
		u.wanted = true
		return false
	case now.Sub(u.found) >= usersLife:
		u.wanted = true
	}
	return u.decided
}

// forget discards what is known about a ring, because its agent has written to it, or it
// was closed.
func (l *liveness) forget(id files.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.rings, id)
}

// due returns the rings to search for now. If there are any, search must follow.
func (l *liveness) due(now time.Time) map[files.ID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.searching || now.Before(l.next) {
		return nil
	}
	wanted := make(map[files.ID]string)
	for id, u := range l.rings {
		if u.wanted {
			wanted[id], u.wanted = "", false
		}
	}
	l.searching = len(wanted) > 0
	return wanted
}

// search searches for the processes of rings. now is the time at which they were due.
func (l *liveness) search(ctx context.Context, wanted map[files.ID]string, now time.Time) {
	began := time.Now()
	users, err := process.FindUsers(ctx, l.proc, wanted)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searching = false
	l.next = now.Add(max(usersInterval, usersShare*time.Since(began)))
	for id := range wanted {
		u := l.rings[id]
		switch {
		case u == nil || u.wanted: // closed or changed meanwhile
		case err != nil:
			u.wanted = true
		default:
			u.found, u.agents = now, users.Agents(id)
			// This process has each ring mapped, so if it isn't found, others may be missing, too.
			u.decided = len(u.agents) == 0 && users.Everywhere && !users.Hides(u.info.Owner) && users.Has(id, os.Getpid())
		}
	}
}
