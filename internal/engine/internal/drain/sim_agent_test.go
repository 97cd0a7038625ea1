// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// simAgent is a process that writes a ring, one memory store at a time.
type simAgent struct {
	world   *world
	path    string
	file    *simFile // the mapped file
	lay     simLayout
	slots   uint64
	next    uint64    // its own copy of the position, which advances before the event is stored
	write   uint64    // the position in the header
	pushed  int       // number of events that it has pushed
	steps   []simStep // that remain; the first isn't done
	alive   bool
	process int           // its number; an agent whose number stays is exported under the same attributes
	paused  int           // number of steps for which it doesn't run
	halfway time.Duration // for which it has been between its first two stores in the header

	resized  bool     // the file has a new size, but still the old header
	starting bool     // the header isn't complete
	fresh    bool     // the header was completed since the process last began to run
	seenBy   *process // the process that had the ring open when the agent began to restart
}

// simStep is a store of an agent, or its load of the read position.
type simStep struct {
	kind stepKind
	do   func()
	done bool
}

// stepKind is how a CPU may reorder a step. Agents store slots and most of the header with
// plain stores.
type stepKind uint8

const (
	barrier stepKind = iota // nothing passes it
	acquire                 // a load that passes stores; later steps don't pass it
	plain                   // a store that passes everything but earlier loads
	release                 // a store that passes nothing; later steps may pass it
)

// start simulates the start of an agent. Like NIXL, it reuses an existing file with any
// content.
func (a *simAgent) start(lay simLayout, slots uint64) {
	a.end()
	w := a.world
	f := w.fileOf(a.path)
	a.file, a.lay, a.slots, a.next, a.write, a.alive, a.starting, a.pushed = f, lay, slots, 0, 0, true, true, 0
	if w.plan.streams && w.IntN(2) == 0 {
		a.process++
	}
	reset := func(kind stepKind, store func()) simStep {
		return simStep{kind: kind, do: func() {
			if f.resets { // this is the first store
				w.reset(a)
				w.lastRun++
				f.lay, f.slots, f.run, f.resets = lay, slots, w.lastRun, false
			}
			store()
		}}
	}
	a.steps = []simStep{
		{kind: barrier, do: func() { w.truncated(a); f.truncate(a.size()) }},
		reset(plain, func() { f.half = true; f.store(offWritePos, 0) }),
		// It isn't reordered with the store before; see ARCHITECTURE.md, "Known gaps".
		reset(release, func() { f.half = false; w.rewound(a); f.store(offReadPos, 0) }),
		reset(plain, func() { f.store32(offVersion, 0) }),
		reset(plain, func() { f.store(offCapacity, slots) }),
		reset(plain, func() { f.store(offMask, slots-1) }),
		{kind: barrier, do: func() {
			f.store32(offVersion, lay.version)
			a.starting, a.fresh = false, true
			f.started = w.begun[a.path]
		}},
		{kind: plain, do: func() { f.store32(offExpected, lay.version) }},
	}
}

// size returns the size of the agent's ring.
func (a *simAgent) size() int { return simHeader + int(a.slots)*a.lay.slot }

// push adds the steps for one event, which has no effect if the ring is full.
func (a *simAgent) push() {
	w, f := a.world, a.file
	var slot, next, id, value uint64
	at := func() int { return simHeader + int(slot)*a.lay.slot }
	full := false
	add := func(kind stepKind, fn func()) {
		a.steps = append(a.steps, simStep{kind: kind, do: func() {
			if !full {
				fn()
			}
		}})
	}
	add(acquire, func() {
		slot, next = a.next, (a.next+1)&(a.slots-1)
		if full = f.load(offReadPos) == next; full {
			return
		}
		w.lastID++
		id, value = w.lastID, w.newValue(w.lastID, a.pushed)
		a.next = next
		a.pushed++
	})
	switch a.lay.layout {
	case ringbuf.V1:
		add(plain, func() {
			b := f.memory[at() : at()+a.lay.slot]
			clear(b[8:48])
			binary.LittleEndian.PutUint32(b[8:], uint32(ringbuf.CategoryMemory))
			copy(b[12:44], "agent_memory_registered")
		})
	case ringbuf.V2:
		add(plain, func() { f.store(at(), uint64(ringbuf.CategoryMemory)|uint64(ringbuf.TypeMemoryRegistered)<<32) })
	default:
		add(plain, func() { f.store(at(), uint64(ringbuf.TypeMemoryRegistered)) })
	}
	add(plain, func() {
		f.store(at()+a.lay.value, value)
		f.content[at()+a.lay.value], w.stored[id] = id, w.now
	})
	add(release, func() {
		w.wrote(a, id)
		a.write = next
		f.store(offWritePos, next)
		// After a restart, a reader stores 1 for a moment during a commit from 0.
		if read, end := f.load(offReadPos), (next+1)&(a.slots-1); read == end {
			f.full = true
		}
		often := 50
		if w.resumes(a) {
			often = 2 // a resume compares the times
		}
		if w.IntN(often) == 0 { // a commit from position 0 may be under way
			f.changed = w.now // the first store to a page, also after a write-back
		}
	})
}

// step makes one store.
func (a *simAgent) step() {
	if a.paused > 0 {
		a.paused--
		return
	}
	if len(a.steps) > 0 {
		a.do(0)
	}
}

// do makes step i, although earlier ones may still be missing.
func (a *simAgent) do(i int) {
	a.steps[i].done = true
	a.steps[i].do()
	for len(a.steps) > 0 && a.steps[0].done {
		a.steps = a.steps[1:]
	}
}

// reorder makes a random step that the CPU may make before others. It ends with a call of
// fence, because stores are visible out of order for nanoseconds only.
func (a *simAgent) reorder() {
	if a.paused > 0 {
		return
	}
	var may []int
	for i, s := range a.steps {
		if s.kind == barrier && i > 0 || i == 12 {
			break
		}
		if !s.done && (i == 0 || s.kind != release) {
			may = append(may, i)
		}
		if !s.done && (s.kind == acquire || s.kind == barrier) {
			break
		}
	}
	if len(may) > 0 {
		a.do(may[a.world.IntN(len(may))])
	}
}

// reordered reports whether stores have passed others.
func (a *simAgent) reordered() bool {
	return slices.ContainsFunc(a.steps, func(s simStep) bool { return s.done })
}

// pushAll pushes events at once.
func (a *simAgent) pushAll(n int) {
	for range n {
		a.push()
	}
	a.finish()
}

// finish makes all steps that remain.
func (a *simAgent) finish() {
	for len(a.steps) > 0 {
		a.do(0)
	}
}

// end ends the process. It makes the steps that others have passed, because a CPU does so,
// and the store that follows its first one in the header: a process ends between the two
// less often than once in a million restarts, because they are adjacent.
func (a *simAgent) end() {
	a.fence()
	if a.file != nil && a.file.half {
		a.finishReset()
	}
	a.alive, a.steps = false, nil
}

// finishReset makes the steps that remain until both positions are reset.
func (a *simAgent) finishReset() {
	for a.file.resets || a.file.half {
		a.do(0)
	}
}

// fence makes the steps that others have passed.
func (a *simAgent) fence() {
	for n := len(a.steps); n > 0; n-- {
		if a.steps[n-1].done {
			for len(a.steps) > 0 && n > 0 {
				before := len(a.steps)
				a.do(0)
				n -= before - len(a.steps)
			}
			return
		}
	}
}
