// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringbuf reads and writes the telemetry rings of NIXL agents.
//
// # The ring
//
// An agent that runs with telemetry maps a file named after itself and pushes
// fixed-size events into it. Any process that maps the same file may take them
// out. The file is a header and a power of two of slots. In layouts V1 to V4:
//
//	0        8        16      20      24        32      40
//	writePos readPos  version expect  capacity  mask    slot 0, slot 1, …
//
// In layout V5:
//
//	0        8        16      24     256      512
//	writePos capacity version mask   readPos  slot 0, slot 1, …
//
// Positions are slot numbers, already masked. The ring is empty when they are
// equal and holds at most capacity-1 events. Only the agent stores writePos,
// after the slot; only one consumer stores readPos, after it is done with the
// slots. A full ring drops the newest event and counts nothing. See [Layout] for
// the slots.
//
// # Reading
//
// [OpenReader] checks the file before it maps it. A [Reader] then works in passes:
// [Reader.Read] calls a function with the pending events, in place, and
// [Reader.Commit] gives their slots back to the agent. Between the two the ring
// still holds the events, so that a caller that stores its totals before it
// commits loses nothing in a crash.
//
//	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
//	…
//	_, err = r.Read(0, func(b ringbuf.Batch) {
//		for i := range b.Len() {
//			e := b.Event(i)
//			…
//		}
//	})
//	err = r.Commit()
//
// A reader in mode [Observe] opens the file read-only and moves nothing; it works
// beside a consumer. [Reader.Idle] finds out cheaply that there is nothing to do.
//
// # Trust
//
// A ring is bytes from another process, which may exit, restart on the same file,
// shrink it, or lie, at any instruction. Capacity, mask, positions and size are
// checked when the ring is opened, and the checked copy is used from then on.
// Positions are checked in every pass. A restart is noticed at whatever store the
// agent has come to; a state that can't be trusted yet yields nothing pending. A
// store of readPos is a compare-and-swap, so that it never overwrites what another
// process has stored. Memory that vanishes because the file has shrunk is an error
// ([ErrShrunk]), not a crash. A reader never creates, truncates or removes a file.
//
// One thing can't be noticed in time: an agent that restarts, and pushes, while a
// pass reads its slots in place. The pass may then count events of the new run.
//
// # Writing
//
// [Create] makes a ring as an agent does, with the same bytes in the same order of
// stores, and [Writer.Push] pushes one event.
//
// # Layers
//
// The protocol works on any memory behind a [Backing], on all little-endian
// platforms: see [NewReader] and [NewWriter]. The files are on linux/amd64 and
// linux/arm64 only, without cgo; on other platforms every call that opens a file
// returns [errors.ErrUnsupported].
package ringbuf
