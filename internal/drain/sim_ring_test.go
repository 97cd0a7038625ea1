// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The simulation doesn't write rings with ringbuf's Writer, because its results must not
// depend on the tested code.

// simLayout is the ring format of a NIXL release.
type simLayout struct {
	layout                                      ringbuf.Layout
	version                                     uint64
	header, slot                                int
	writePos, readPos, capacity, mask, expected int // offsets; expected 0 if there is none
	value                                       int // offset of the value in a slot
}

var simLayouts = []simLayout{
	{layout: ringbuf.V1, version: 1, header: 40, slot: 56, writePos: 0, readPos: 8, capacity: 24, mask: 32, expected: 20, value: 48},
	{layout: ringbuf.V2, version: 2, header: 40, slot: 16, writePos: 0, readPos: 8, capacity: 24, mask: 32, expected: 20, value: 8},
	{layout: ringbuf.V3, version: 3, header: 40, slot: 16, writePos: 0, readPos: 8, capacity: 24, mask: 32, expected: 20, value: 8},
	{layout: ringbuf.V4, version: 4, header: 40, slot: 16, writePos: 0, readPos: 8, capacity: 24, mask: 32, expected: 20, value: 8},
	{layout: ringbuf.V5, version: 5, header: 512, slot: 16, writePos: 0, readPos: 256, capacity: 8, mask: 24, value: 8},
}

// offVersion is the same in all layouts.
const offVersion = 16

// simFile is a ring's file: memory that agents and readers share.
type simFile struct {
	world   *world
	path    string
	memory  []byte
	size    int
	lay     simLayout // layout of the run that wrote the events
	slots   uint64
	changed time.Time // ctime
	locked  bool      // whether a reader of the Collector has locked it
	number  int       // number of earlier containers of the agent
	taken   uint64    // events that another consumer took since the owner's last check
}

// maxSimFile is the size of the largest file: V1 with 64 slots.
const maxSimFile = 40 + 64*56

// location returns the file's location, which differs for each container.
func (f *simFile) location() string {
	if f.number == 0 {
		return f.path
	}
	return fmt.Sprintf("%s#%d", f.path, f.number)
}

func (f *simFile) bytes() []byte { return f.memory }

func (f *simFile) load(at int) uint64     { return binary.LittleEndian.Uint64(f.memory[at:]) }
func (f *simFile) store(at int, v uint64) { binary.LittleEndian.PutUint64(f.memory[at:], v) }

func (f *simFile) store32(at int, v uint64) {
	binary.LittleEndian.PutUint32(f.bytes()[at:], uint32(v))
}

func (f *simFile) load32(at int) uint64 { return uint64(binary.LittleEndian.Uint32(f.bytes()[at:])) }

// truncate sets the file's size, as an agent does when it starts.
func (f *simFile) truncate(size int) {
	if size < f.size {
		clear(f.bytes()[size:])
	}
	f.size = size
	f.changed = f.world.now
}

// mapping is one reader's mapping of a file.
type mapping struct {
	file *simFile
	size int
}

func (m *mapping) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{
		Size: int64(m.file.size), Changed: m.file.changed.UnixNano(), Age: int64(m.file.world.now.Sub(m.file.changed)),
	}, nil
}

// Guard fails if pages of the mapping are beyond the end of the file. A page has 64 bytes.
func (m *mapping) Guard(fn func()) error {
	const page = 64
	if (m.file.size+page-1)/page < (m.size+page-1)/page {
		return ringbuf.ErrShrunk
	}
	fn()
	return nil
}

// simAgent is a process that writes a ring, one memory store at a time.
type simAgent struct {
	world  *world
	path   string
	file   *simFile // the mapped file
	lay    simLayout
	slots  uint64
	write  uint64   // its own copy of the position
	steps  []func() // remaining stores
	alive  bool
	paused int // number of steps for which it doesn't run

	resized  bool     // the file has a new size, but still the old header
	starting bool     // the header isn't complete
	seenBy   *process // the process that had the ring open when the agent began to restart
}

// start simulates the start of an agent. Like NIXL, it reuses an existing file with any
// content.
func (a *simAgent) start(lay simLayout, slots uint64) {
	w := a.world
	f := w.files[a.path]
	a.file, a.lay, a.slots, a.write, a.alive, a.starting = f, lay, slots, 0, true, true
	a.steps = []func(){
		func() { w.truncated(a); f.truncate(lay.header + int(slots)*lay.slot) },
		func() { w.reset(a); f.lay, f.slots = lay, slots; f.store(lay.writePos, 0) },
		func() { f.store(lay.readPos, 0) },
		func() { f.store32(offVersion, 0) },
		func() { f.store(lay.capacity, slots) },
		func() { f.store(lay.mask, slots-1) },
		func() { f.store32(offVersion, lay.version); a.starting = false },
	}
	if lay.expected > 0 {
		a.steps = append(a.steps, func() { f.store32(lay.expected, lay.version) })
	}
}

// push adds the stores for one event, which has no effect if the ring is full.
func (a *simAgent) push() {
	w, f := a.world, a.file
	var next, id uint64
	at := func() int { return a.lay.header + int(a.write)*a.lay.slot }
	full := false
	do := func(fn func()) {
		a.steps = append(a.steps, func() {
			if !full {
				fn()
			}
		})
	}
	do(func() {
		next = (a.write + 1) & (a.slots - 1)
		if full = f.load(a.lay.readPos) == next; full {
			w.dropped++
			return
		}
		w.lastID++
		id = w.lastID
	})
	switch a.lay.layout {
	case ringbuf.V1:
		do(func() {
			b := f.bytes()[at() : at()+a.lay.slot]
			clear(b[8:48])
			binary.LittleEndian.PutUint32(b[8:], uint32(ringbuf.CategoryMemory))
			copy(b[12:44], "agent_memory_registered")
		})
	case ringbuf.V2:
		do(func() { f.store(at(), uint64(ringbuf.CategoryMemory)|uint64(ringbuf.TypeMemoryRegistered)<<32) })
	default:
		do(func() { f.store(at(), uint64(ringbuf.TypeMemoryRegistered)) })
	}
	do(func() {
		f.store(at()+a.lay.value, id)
		if a.write == a.slots-1 {
			w.unpushed[id] = f
		}
	})
	do(func() {
		w.wrote(a, id)
		a.write = next
		f.store(a.lay.writePos, next)
	})
}

// step makes one store.
func (a *simAgent) step() {
	if a.paused > 0 {
		a.paused--
		return
	}
	if len(a.steps) > 0 {
		fn := a.steps[0]
		a.steps = a.steps[1:]
		fn()
	}
}
