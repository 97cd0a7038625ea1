// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
)

// users caches which processes use the rings, because reading /proc takes time.
type users struct {
	proc  procs.FS
	locks map[string]procs.Process // the consumers, by path
	all   bool                     // these are all consumers
	of    map[string]*procs.Users  // the users of some rings, by path
	next  time.Time                // of the next scan
}

// update scans /proc if the next scan is due. It searches for the consumers of all rings,
// and for the other users of those for which scan returns true.
func (u *users) update(now time.Time, agents []Reading, scan func(i int) bool) {
	if now.Before(u.next) {
		return
	}
	began := time.Now()
	var all, some []string
	for i := range agents {
		all = append(all, agents[i].Path)
		if scan(i) {
			some = append(some, agents[i].Path)
		}
	}
	u.locks, u.all = u.proc.Consumers(all...)
	u.of = u.proc.Users(some...)
	u.next = now.Add(max(procsInterval, procsFactor*time.Since(began)))
}

// lock returns the consumer of a ring.
func (u *users) lock(path string) Lock {
	p := u.locks[path]
	return Lock{PID: p.PID, Name: p.Command, Unknown: p.PID == 0 && !u.all}
}
