// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// memory is the state for [Totals.MemoryUsage], also in its stored form. Events describe single registrations,
// so the current amount is known only if no event was missed since the agent started.
type memory struct {
	Known bool // whether every registration since the agent's start was counted

	// Totals when the agent last started. When a process exits, its memory is
	// released.
	RegisteredBefore, DeregisteredBefore Sum
}

// Registered returns the memory that was registered, in bytes.
func (t *Totals) Registered() *Total { return &t.counters[ringbuf.TypeMemoryRegistered] }

// Deregistered returns the memory that was deregistered, in bytes.
func (t *Totals) Deregistered() *Total { return &t.counters[ringbuf.TypeMemoryDeregistered] }

// MemoryUsage returns the bytes registered minus the bytes deregistered since the
// agent started. The result is never negative. known is false if some of these events
// may be missing.
func (t *Totals) MemoryUsage() (bytes int64, known bool) {
	if !t.memory.Known {
		return 0, false
	}
	return t.balance(), true
}

// balance returns the bytes of MemoryUsage, which may be negative if events are
// missing.
func (t *Totals) balance() int64 {
	registered, deregistered := t.Registered().Sum, t.Deregistered().Sum
	registered.sub(t.memory.RegisteredBefore)
	deregistered.sub(t.memory.DeregisteredBefore)
	return registered.less(deregistered)
}

// checkMemory detects missed registrations: an agent never deregisters more than it has
// registered. It must run after each deregistration, because later registrations would
// hide the gap.
func (a *Agent) checkMemory() {
	if a.memory.Known && a.balance() < 0 {
		a.memory.Known = false
	}
}

// Opened records that a ring without a checkpoint was opened. fromStart reports whether
// the ring still holds every event since the agent's start.
func (a *Agent) Opened(fromStart bool) {
	a.memory = memory{
		Known:              fromStart,
		RegisteredBefore:   a.Registered().Sum,
		DeregisteredBefore: a.Deregistered().Sum,
	}
}
