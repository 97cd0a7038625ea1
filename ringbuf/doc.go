// Package ringbuf reads and writes the telemetry rings of NIXL agents.
//
// # The ring
//
// An agent that runs with telemetry on maps a file named after itself into its
// memory and pushes fixed-size events into it; whoever maps the same file may
// take them out. The file is a header of 40 bytes and a power of two of slots:
//
//	0        8        16      20      24        32      40
//	writePos readPos  version expect  capacity  mask    slot 0, slot 1, …
//
// Positions are slot numbers, already masked. The ring is empty when they are
// equal and holds at most capacity-1 events. The agent alone stores writePos,
// after the slot; one consumer alone stores readPos, after it is done with the
// slots. A full ring drops the newest event and counts nothing.
//
// The layout of a slot changed four times; see [Layout].
//
// # Reading
//
// [OpenReader] checks the file before it is mapped, and the header before it
// is believed. A [Reader] then works in passes. [Reader.Read] hands out what
// is pending, in place, inside a callback; [Reader.Commit] gives the slots
// back to the agent. Between the two the ring still holds the events, so that
// a caller that stores its totals before it commits loses nothing in a crash.
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
// A reader in mode [Observe] opens the file read-only and moves nothing; it
// works beside a consumer.
//
// # What is not trusted
//
// A ring is bytes from another process, which may die, start anew on the same
// file, shrink it, or lie, at any instruction. Capacity, mask, positions and
// size are checked when the ring is opened, and the checked copy is what is
// used from then on. Positions are checked in every pass. A store of readPos
// is a compare-and-swap, so that an agent that started anew is noticed rather
// than overwritten. Memory that vanishes under a reader, because the file has
// shrunk, is an error ([ErrShrunk]), not a crash. No file is ever created,
// truncated or removed by a reader.
//
// # Writing
//
// [Create] makes a ring as an agent does, with the same bytes in the same
// order of stores, and [Writer.Push] pushes one event. Simulators, tests and
// Go programs that want to be read like every other agent use it.
//
// # Platforms
//
// The package works on linux, on amd64 and arm64, without cgo. Elsewhere it
// compiles and every call that opens a ring returns [errors.ErrUnsupported].
package ringbuf
