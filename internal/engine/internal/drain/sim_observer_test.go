// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"bytes"
	"errors"
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// simObserver is a process that reads a ring without consuming, such as nixlring or a second
// Collector with mode: observe.
type simObserver struct {
	world  *world
	file   *simFile
	reader *ringbuf.Reader
	begun  int    // number of agents that had begun to start when it opened the ring
	last   uint64 // the newest event that it has seen
	at     uint64 // number of the events that were pushed before its position
	sure   bool   // it had read everything when the agent restarted, so it detects that
	early  bool   // it may have copied the last slot after that was written, but before the event was pushed
}

// observe lets an observer open an agent's ring, read from it, or close it. An observer that was
// overtaken by a lap ends, because it can't detect that.
func (w *world) observe(f *simFile) {
	o, raced := w.observers[f], w.raced
	switch {
	case o != nil && (w.IntN(50) == 0 || f.pushes-o.at >= f.slots):
		delete(w.observers, f)
		return
	case o == nil:
		if o = w.newReader(f, ringbuf.Observe); o == nil {
			return
		}
		w.observers[f] = o
		w.note("%s: an observer opens the ring at %d", f.location(), o.reader.Position())
	}
	o.early = o.early || slices.ContainsFunc(w.agents, func(a *simAgent) bool { return a.file == f && a.next == 0 && a.write != 0 })
	before := bytes.Clone(f.memory)
	limit := w.IntN(8)
	err := o.read(limit)
	w.note("%s: an observer has read up to %d, last event %d, write position %d: %v", f.location(), o.reader.Position(), o.last, f.load(offWritePos), err)
	if err := o.reader.Commit(); err != nil {
		w.fail("%s: an observer can't commit: %v", f.location(), err)
	}
	if idle := o.reader.Idle(); idle && err == nil && limit == 0 && w.raced == raced && f.readable() && o.reader.Position() != f.load(offWritePos) {
		w.fail("%s: an observer at %d finds the ring idle", f.location(), o.reader.Position())
	}
	if w.raced == raced && !bytes.Equal(before, f.memory) {
		w.fail("%s: an observer has changed the ring", f.location())
	}
	o.early = o.early || w.raced != raced
	if errors.Is(err, ringbuf.ErrRestarted) && w.begun[f.path] == o.begun && !o.early && f.readable() && w.plan.values == 0 {
		w.fail("%s: an observer at %d reports a restart, but there was none", f.location(), o.reader.Position())
	}
	unread := f.load(offWritePos) - o.reader.Position()
	o.at = f.pushes - unread&(f.slots-1)
	if err != nil && !errors.Is(err, ringbuf.ErrLapped) {
		delete(w.observers, f)
	}
}

// newReader opens a ring in another process. It returns nil if the file isn't a valid ring.
func (w *world) newReader(f *simFile, mode ringbuf.Mode) *simObserver {
	if f.size < 64 {
		return nil
	}
	starting := !f.readable() || f.started != w.begun[f.path]
	r, err := ringbuf.NewReader(f.memory[:f.size], &mapping{f, f.size}, mode)
	if err != nil {
		return nil
	}
	o := &simObserver{world: w, file: f, reader: r, begun: w.begun[f.path]}
	if starting || !f.readable() || f.started != o.begun { // the agent is starting, so it may read slots of the earlier run
		o.begun = -1
	}
	return o
}

// read reads up to limit events, and checks that an agent has written each of them, in this
// order. A value identifies its event only if values are unique. Nothing is checked once the agent
// restarts, because an observer may then read slots of the earlier run.
func (o *simObserver) read(limit int) error {
	w, path, raced := o.world, o.file.path, o.world.raced
	_, err := o.reader.Read(limit, func(b ringbuf.Batch) {
		if w.plan.values != 0 {
			return
		}
		for i := range b.Len() {
			id := b.Event(i).Value
			switch {
			case w.begun[path] != o.begun && (!o.sure || w.raced != raced):
			case w.written[id] != path && w.plan.reorders && !w.stored[id].IsZero():
				continue // of the next lap; see "Known gaps"
			case w.written[id] != path:
				w.fail("%s: another process has read %d, but it was never written there", o.file.location(), id)
			case id <= o.last:
				w.fail("%s: another process has read event %d after event %d", o.file.location(), id, o.last)
			}
			o.last = id
		}
	})
	return err
}

// rival lets a second Collector consume events of a ring that the Collector doesn't have
// open. It reports whether it took them.
func (w *world) rival(f *simFile, n int) bool {
	defer func(races bool) { w.plan.races = races }(w.plan.races)
	w.plan.races = false // n is no longer valid after a restart
	o := w.newReader(f, ringbuf.Consume)
	return o != nil && o.read(n) == nil && o.reader.Commit() == nil
}
