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
// # Loops
//
// Reading a mapped page may block for ever, on FUSE or NFS for example. A
// [Group] therefore has one loop for the rings on local file systems and
// further loops for the others, by device. A loop that hangs delays only the
// rings of its own file systems.
//
// Read the files in this order: message.go, agent.go, pace.go, owner.go,
// open.go, read.go, save.go, collect.go, retire.go, loop.go, group.go.
package drain
