// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// memory is what it takes to tell how much memory an agent has registered now.
// Events describe single registrations, so the present amount is known only if
// none of them was missed since the agent started.
type memory struct {
	known bool // whether every registration since the agent's start was counted

	// Totals when the agent last started. The memory of an earlier run was
	// released with its process.
	registeredBefore, deregisteredBefore Sum
}

// Registered is the memory that was registered, in bytes.
func (t *Totals) Registered() *Total { return &t.counters[ringbuf.TypeMemoryRegistered] }

// Deregistered is the memory that was deregistered, in bytes.
func (t *Totals) Deregistered() *Total { return &t.counters[ringbuf.TypeMemoryDeregistered] }

// MemoryUsage returns the bytes that were registered minus those that were
// deregistered since the agent started. It reports false if some of these
// events are or may be missing. The result is never negative.
func (t *Totals) MemoryUsage() (bytes int64, known bool) {
	if !t.memory.known {
		return 0, false
	}
	return t.balance(), true
}

// balance is MemoryUsage before anybody asks whether it is known.
func (t *Totals) balance() int64 {
	registered, deregistered := t.Registered().Sum, t.Deregistered().Sum
	registered.sub(t.memory.registeredBefore)
	deregistered.sub(t.memory.deregisteredBefore)
	return registered.less(deregistered)
}

// checkMemory notices that registrations were missed: an agent doesn't
// deregister more than it has registered. It must run after each
// deregistration, as later registrations would hide the gap.
func (a *Agent) checkMemory() {
	if a.memory.known && a.balance() < 0 {
		a.memory.known = false
	}
}

// Opened records that a ring was attached for which there is no checkpoint.
// fromStart reports whether the ring still holds everything that its agent has
// written since it started.
func (a *Agent) Opened(fromStart bool) {
	a.memory = memory{
		known:              fromStart,
		registeredBefore:   a.Registered().Sum,
		deregisteredBefore: a.Deregistered().Sum,
	}
}
