// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
)

// users remembers which processes use the rings, as finding out takes time.
type users struct {
	proc  procs.FS
	locks map[string]procs.Process // the consumers, by path
	of    map[string]*procs.Users  // of the rings that were asked about, by path
	next  time.Time                // when to look again
}

// look updates the users if it is time to. It reads /proc only for the rings for
// which asked returns true.
func (u *users) look(now time.Time, agents []Reading, asked func(i int) bool) {
	if now.Before(u.next) {
		return
	}
	began := time.Now()
	var all, some []string
	for i := range agents {
		all = append(all, agents[i].Path)
		if asked(i) {
			some = append(some, agents[i].Path)
		}
	}
	u.locks = u.proc.Consumers(all...)
	u.of = u.proc.Users(some...)
	u.next = now.Add(max(lookEvery, lookShare*time.Since(began)))
}

// lock returns the consumer of a ring, or none.
func (u *users) lock(path string) Lock {
	p := u.locks[path]
	return Lock{PID: p.PID, Name: p.Command}
}
