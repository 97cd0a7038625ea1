// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
)

// simSaver is the saver's queue, without its goroutine, and the storage extension. It is
// the extension's Store: a call takes effect when it ends.
type simSaver struct {
	process *process
	queue   *checkpoint.Queue
	meta    map[*byte]stored // by the first byte of a value

	current *checkpoint.Call
	began   time.Time
	doneAt  time.Time // when the current call ends; never if it hangs forever
	hung    bool
	stall   time.Duration // how long the next call takes at least
	err     error         // result of the current call
}

func newSimSaver(p *process) *simSaver {
	w := p.world
	return &simSaver{process: p, queue: checkpoint.NewQueue(w.plan.staleAfter, w.now), meta: make(map[*byte]stored)}
}

var errDisk = errors.New("disk full")

// step begins the next call, or ends the current one.
func (s *simSaver) step() {
	w := s.process.world
	if s.current == nil {
		if s.current = s.queue.Next(w.now); s.current == nil {
			return
		}
		s.begin()
	}
	if s.hung || w.now.Before(s.doneAt) {
		return
	}
	c := s.current
	s.current = nil
	value, err := []byte(nil), s.err
	if err == nil {
		value, err = c.Do(context.Background(), s)
	}
	s.queue.Done(c, value, err, w.now)()
}

// begin decides how long the current call takes, and whether it fails.
func (s *simSaver) begin() {
	w := s.process.world
	took := time.Duration(w.IntN(1_000_000))
	if w.plan.slow {
		took = time.Duration(w.IntN(300)) * time.Millisecond
	}
	if s.hung = false; w.plan.hanging && w.IntN(50) == 0 {
		s.hung = w.IntN(3) == 0
		took = time.Duration(w.IntN(15)) * time.Second
	}
	if s.current.Key != "" && w.plan.hanging && w.plan.jumps && w.IntN(4) == 0 {
		took = time.Duration(10+w.IntN(30)) * time.Second // until its agent is retired
	}
	took, s.stall = max(took, s.stall), 0
	s.began, s.doneAt, s.err = w.now, w.now.Add(took), nil
	if w.plan.failing && w.IntN(4) == 0 {
		s.err = errDisk
	}
}

// Get implements checkpoint.Store.
func (s *simSaver) Get(_ context.Context, key string) ([]byte, error) {
	return s.process.world.store[key].value, nil
}

// Apply implements checkpoint.Store.
func (s *simSaver) Apply(_ context.Context, ops []checkpoint.Op) error {
	w := s.process.world
	for _, op := range ops {
		s.checkOp(op)
		if op.Value == nil {
			w.note("%s: checkpoint removed", op.Key)
			delete(w.store, op.Key)
			continue
		}
		content := stored{value: op.Value} // the index has no other content
		if len(op.Value) > 0 && s.meta[&op.Value[0]].value != nil {
			content = s.meta[&op.Value[0]]
		}
		w.store[op.Key] = content
		if content.from == 0 && content.to != 0 && w.plan.crashes && w.IntN(8) == 0 {
			w.doomed = true // before the commit from position 0
		}
		for id := range content.lineage {
			w.earlier[id] = true // stored totals have counted it, even if they are discarded later
		}
	}
	return nil
}

// checkOp checks that only checkpoints of agents that were retired, or weren't found within
// stale_after, are removed, and that the list of checkpoints keeps the others.
func (s *simSaver) checkOp(op checkpoint.Op) {
	w, p := s.process.world, s.process
	path, isAgent := strings.CutPrefix(op.Key, "agent:")
	switch {
	case isAgent && op.Value == nil && !p.retired[path] && w.now.Sub(p.began) < w.plan.staleAfter:
		w.fail("%s: the checkpoint is removed after %v", path, w.now.Sub(p.began))
	case !isAgent:
		for key := range w.store {
			path, isAgent := strings.CutPrefix(key, "agent:")
			if isAgent && strings.Contains(string(w.store[op.Key].value), path) && !strings.Contains(string(op.Value), path) {
				w.fail("%s: the list of checkpoints lacks it", path)
			}
		}
	}
}

// simLoaded is like loaded, and records the restored totals.
type simLoaded struct {
	loaded
	world *world
}

func (m simLoaded) apply(o *owner, now time.Time) {
	a := o.agents[m.id]
	if a == nil || a.opening == nil || m.value == nil {
		m.loaded.apply(o, now)
		return
	}
	if m.world.process.forgotten[m.id] {
		m.world.fail("%s: the checkpoint of a retired agent is loaded", m.id)
	}
	got := m.world.store["agent:"+m.id]
	m.world.counted[m.id], m.world.known[m.id], m.world.restarts[m.id] = maps.Clone(got.lineage), got.known, got.restarts
	m.world.usage[m.id] = m.world.usageOf(got.lineage)
	if mark, _, err := checkpoint.Parse(m.value); err != nil {
		m.world.fail("stored checkpoint: %v", err)
	} else {
		p := m.world.process
		f := p.fileOf(a.opening.Reader)
		m.world.resuming(f, &mark)
		p.expectRestart(f, a.opening.Reader, &mark)
	}
	m.loaded.apply(o, now)
}
