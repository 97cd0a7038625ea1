// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package drain owns the rings of NIXL agents: it reads them, counts their
// events, stores the totals and commits what was stored.
//
// # One owner
//
// Every reader, tally and position belongs to an [owner], which has no
// goroutine, no clock and no file system. Its step method takes the time and
// the messages that have arrived, and returns effects: what is to be closed,
// opened again, stored, reported and answered. A loop runs one owner on one
// goroutine. Everybody else sends a message, or gets a copy.
//
//	discover ── Opened, Removed, Attended … ──▶ ┌───────┐ ──▶ Close, Reopen, Retire
//	saver    ── loaded, saved ────────────────▶ │ owner │ ──▶ load, save, forget
//	receiver ── collect, delivered ───────────▶ └───────┘ ──▶ replies, notices
//
// A test drives the owner the same way: the simulation in this package runs
// agents, a store, other consumers and crashes against it, all from one seed.
//
// # The loop
//
// A [Loop] runs the owner. Reading a mapped page can block, in a failing disk for
// example. Then collections and Stop go on without the loop, and say so. File
// systems whose pages another machine or process serves, such as FUSE and NFS, are
// refused when a ring is opened: a thread that waits for such a page stops the
// whole process at its next garbage collection.
//
// Read the files in this order: message.go, agent.go, pace.go, owner.go,
// open.go, read.go, save.go, collect.go, retire.go, mailbox.go, loop.go.
package drain
