// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringbuf reads and writes the telemetry rings of NIXL agents.
//
// # The ring
//
// An agent with telemetry enabled maps a file named after itself and pushes
// fixed-size events into it. Any process that maps the same file may consume
// them. The file is a header followed by slots; their number is a power of two.
//
//	0        8        16      20      24        32      40
//	writePos readPos  version expect  capacity  mask    slot 0, slot 1, …
//
// Positions are slot numbers, already masked. The ring is empty when the two are
// equal, and holds at most capacity-1 events. Only the agent stores writePos, and
// only after it has written the slot. Only one consumer stores readPos, and only
// after it no longer needs the slots. When the ring is full, the agent drops the
// newest event without counting it. See [Layout] for the slots.
//
// # Reading
//
// [OpenReader] checks the file before it maps it. A [Reader] then works in passes:
// [Reader.Read] calls a function with copies of the pending events, and
// [Reader.Commit] returns their slots to the agent. Between the two, the ring
// still holds the events, so a caller that stores its totals before it commits
// loses nothing in a crash.
//
// A reader in mode [Observe] opens the file read-only and changes nothing, so it
// can run next to a consumer. [Reader.Idle] is a cheap check for new events.
//
// # Trust
//
// Another process writes the ring. At any instruction, it may exit, restart on the
// same file, shrink it, or write invalid data. The reader therefore trusts nothing:
//
//   - It checks capacity, mask, positions and size when it opens the ring, and uses
//     the checked copy from then on. It checks positions in every pass.
//   - It detects a restart at any point of the agent's initialization. While the
//     state is ambiguous, it reports no pending events.
//   - It stores readPos with a compare-and-swap, so it never overwrites a value that
//     another process has stored.
//   - If memory disappears because the file has shrunk, it returns [ErrShrunk]
//     instead of crashing.
//   - It never creates, truncates or removes a file.
//
// One case can't be detected in time: if an agent restarts and pushes while a pass
// copies slots, the pass may count events of the new run.
//
// # Writing
//
// [Create] creates a ring as an agent does, with the same stores in the same order.
// [Writer.Push] pushes one event.
//
// # Layers
//
// The protocol works on any memory behind a [Backing], on all little-endian
// platforms: see [NewReader] and [NewWriter]. Ring files are supported on
// linux/amd64 and linux/arm64, without cgo. On other platforms, every call that
// opens a file returns [errors.ErrUnsupported].
package ringbuf

// Maintainers read the files in this order. A file uses types of earlier files only, except
// for the fields of Reader.
//
//   - errors.go, event.go, layout.go, header.go: the format
//   - memory.go, batch.go: the memory of a ring
//   - reader.go, restart.go, commit.go, holes.go, observe.go, checksum.go: reading
//   - writer.go: writing
//   - mapping_linux.go, open.go: files
