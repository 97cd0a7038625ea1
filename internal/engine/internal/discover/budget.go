// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
)

// Budget limits what each holder of rings may use: a container, or a pod if the container
// isn't known. A directory that containers may share, such as a configured one, has
// sharedFactor times the budget, and as many rings as all directories together.
type Budget struct {
	Rings       int   // agents
	Files       int   // files that are checked
	Directories int   // directories that are watched
	MappedBytes int64 // size of all rings that are open
}

// DefaultBudget is enough for any container of NIXL agents that we know of.
var DefaultBudget = Budget{Rings: 256, Files: 4096, Directories: 64, MappedBytes: 64 << 20}

const sharedFactor = 16

// resource is what a budget limits.
type resource uint8

const (
	someRings resource = iota
	someFiles
	someDirectories
	someBytes
	resources
)

func (r resource) String() string {
	return [...]string{"rings", "files", "directories", "mapped bytes"}[r]
}

func (b Budget) of(r resource) int64 {
	return [...]int64{int64(b.Rings), int64(b.Files), int64(b.Directories), b.MappedBytes}[r]
}

// account is what a holder uses.
type account struct {
	used [resources]int64
}

// budgetError means that a holder has no budget left.
type budgetError struct {
	holder   drain.Holder
	resource resource
	limit    int64
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("%v uses its whole budget of %d %v; remove what its agents don't need",
		e.holder, e.limit, e.resource)
}

// limitOf returns the limit of a holder.
func (s *Rings) limitOf(h drain.Holder, r resource) int64 {
	switch {
	case !h.Shared:
		return s.Budget.of(r)
	case r == someRings:
		return int64(s.limit)
	default:
		return sharedFactor * s.Budget.of(r)
	}
}

// use adds to what a holder uses, unless that exceeds its budget.
func (s *Rings) use(h drain.Holder, r resource, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.useLocked(h, r, n, false)
}

// useLocked is use. With force, it ignores the limit.
func (s *Rings) useLocked(h drain.Holder, r resource, n int64, force bool) error {
	a := s.account(h)
	if limit := s.limitOf(h, r); a.used[r]+n > limit && !force {
		return &budgetError{h, r, limit}
	}
	a.used[r] += n
	return nil
}

// free is the reverse of use.
func (s *Rings) free(h drain.Holder, r resource, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(h, r, n)
}

func (s *Rings) freeLocked(h drain.Holder, r resource, n int64) {
	a := s.account(h)
	a.used[r] -= n
	if a.used == ([resources]int64{}) {
		delete(s.accounts, h)
	}
}

// account returns the account of a holder. It creates the account if necessary.
func (s *Rings) account(h drain.Holder) *account {
	a := s.accounts[h]
	if a == nil {
		a = &account{}
		s.accounts[h] = a
	}
	return a
}

// admit returns an error if a holder can't have another agent, because of its budget or of
// the limit on all rings.
func (s *Rings) admit(h drain.Holder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) >= s.limit {
		return fmt.Errorf("%w; most of them are in %v", errLimit, s.largest())
	}
	if limit := s.limitOf(h, someRings); s.account(h).used[someRings] >= limit {
		return &budgetError{h, someRings, limit}
	}
	return nil
}

// largest returns the holder that has most rings.
func (s *Rings) largest() (h drain.Holder) {
	most := int64(-1)
	for holder, a := range s.accounts {
		if n := a.used[someRings]; n > most || n == most && holder.String() < h.String() {
			h, most = holder, n
		}
	}
	return h
}
