// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package drain owns the rings of NIXL agents: it reads them, counts their
// events, stores the totals and commits what was stored.
//
// # One owner
//
// Every reader, tally and position belongs to an [owner], which has no goroutine and opens
// no file. Its step method takes the current time and the messages that have arrived. It waits
// for nobody: closing a ring or storing checkpoints are requests to others. A [Loop] runs one
// owner on one goroutine. Other goroutines send messages or get copies.
//
//	discover ── Offer, Attended … ────────────▶ ┌───────┐ ──▶ Close, Reopen, Retire
//	saver    ── saved ────────────────────────▶ │ owner │ ──▶ save
//	receiver ── collect, delivered ───────────▶ └───────┘ ──▶ replies, notices
//
// Tests call step in the same way: the simulation in this package runs agents, a store,
// other consumers and crashes against an owner, all from one seed.
//
// # The loop
//
// Reading a mapped page can block, for example because of a failing disk. In this case,
// [Loop.Collect] and [Loop.Stop] return an error instead of waiting for the loop. Rings
// on file systems whose pages another machine or process serves, such as FUSE and NFS,
// are refused when they are opened: a thread that waits for such a page would stop the
// whole process at the next garbage collection.
//
// # Reading order
//
// A file uses types of earlier files only, except in the fields of agent and owner.
//
//   - snapshot.go, message.go: what others see of an agent, and what they send
//   - exit.go, pace.go, agent.go, owner.go: the state
//   - identify.go, admit.go: which agent has which ring
//   - successor.go, open.go, read.go: rings
//   - collect.go, save.go, retire.go: requests, and what is due
//   - loop.go: the goroutine
package drain
