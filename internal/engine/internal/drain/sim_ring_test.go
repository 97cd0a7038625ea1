// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The simulation doesn't write rings with ringbuf's Writer, because its results must not
// depend on the tested code.

// simLayout is the ring format of a NIXL release.
type simLayout struct {
	layout  ringbuf.Layout
	version uint64
	slot    int // size of a slot
	value   int // offset of the value in a slot
}

var simLayouts = []simLayout{
	{ringbuf.V1, 1, 56, 48}, {ringbuf.V2, 2, 16, 8}, {ringbuf.V3, 3, 16, 8}, {ringbuf.V4, 4, 16, 8},
}

// The header is the same in all layouts.
const (
	offWritePos, offReadPos = 0, 8
	offVersion, offExpected = 16, 20
	offCapacity, offMask    = 24, 32
	simHeader               = 40
)

// simFile is a ring's file: memory that agents and readers share.
type simFile struct {
	world    *world
	path     string
	memory   []byte
	size     int
	lay      simLayout // layout of the run that wrote the events
	slots    uint64
	changed  time.Time // ctime
	locked   bool      // whether a reader of the Collector has locked it
	number   int       // number of earlier files of the agent
	place    int       // number of earlier containers of the agent
	unlinked bool      // the path is no longer the file's
	taken    uint64    // events that another consumer took since the owner's last check

	content map[int]uint64 // offset of a value to the event that was written there
	begun   int            // number of the last agent that has begun to start; see world.begun
	started int            // the same, but it has started completely
	process int            // number of the last process that has begun to start
	run     int            // of the last agent that has reset the header, among all files
	half    bool           // an agent has reset the write position, but not the read position
	broken  int            // 1 while the header is invalid
	pushes  uint64         // number of events that agents have pushed
	full    bool           // the ring was full at some time
	resets  bool           // an agent has called ftruncate, but hasn't reset the header yet
}

// maxSimFile is the size of the largest file: V1 with 256 slots.
const maxSimFile = 40 + 256*56

func newSimFile(w *world, path string, number, place int) *simFile {
	f := &simFile{world: w, path: path, number: number, place: place, memory: make([]byte, maxSimFile), content: make(map[int]uint64)}
	w.live[f] = make(map[uint64]uint64)
	return f
}

// readable reports whether a reader can know that all events in the file's ring belong to the
// current run.
func (f *simFile) readable() bool {
	return f.slots != 0 && !f.half && !f.resets && f.broken == 0 && f.load32(offVersion) == f.lay.version && f.load(offCapacity) == f.slots &&
		f.load(offMask) == f.slots-1 && f.load(offWritePos) != 0
}

// location returns the file's location, which differs for each container.
func (f *simFile) location() string {
	if f.place == 0 {
		return f.path
	}
	return fmt.Sprintf("%s#%d", f.path, f.place)
}

func (f *simFile) load(at int) uint64 { return binary.LittleEndian.Uint64(f.memory[at:]) }

func (f *simFile) store(at int, v uint64) {
	binary.LittleEndian.PutUint64(f.memory[at:], v)
	delete(f.content, at)
}

func (f *simFile) store32(at int, v uint64) {
	binary.LittleEndian.PutUint32(f.memory[at:], uint32(v))
}

func (f *simFile) load32(at int) uint64 { return uint64(binary.LittleEndian.Uint32(f.memory[at:])) }

// truncate sets the file's size, as an agent does when it starts.
func (f *simFile) truncate(size int) {
	if size < f.size {
		clear(f.memory[size:])
		maps.DeleteFunc(f.content, func(at int, _ uint64) bool { return at+8 > size })
	}
	f.size = size
	f.changed, f.resets = f.world.now, true
}

// event returns the event in a slot of a layout, or 0.
func (f *simFile) event(l ringbuf.Layout, slot uint64) uint64 {
	for _, lay := range simLayouts {
		if lay.layout == l {
			return f.content[simHeader+int(slot)*lay.slot+lay.value]
		}
	}
	return 0
}

// mapping is one reader's mapping of a file.
type mapping struct {
	file *simFile
	size int
}

func (m *mapping) Stat() (ringbuf.FileState, error) {
	m.file.world.race()
	return ringbuf.FileState{Size: int64(m.file.size), Ino: uint64(m.file.number)}, nil
}

func (m *mapping) Now() time.Time { return m.file.world.now }

// Guard fails if pages of the mapping are beyond the end of the file. A page has 64 bytes.
func (m *mapping) Guard(fn func()) error {
	const page = 64
	if (m.file.size+page-1)/page < (m.size+page-1)/page {
		return ringbuf.ErrShrunk
	}
	fn()
	return nil
}
