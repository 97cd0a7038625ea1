// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Why the owner doesn't keep a ring.
var (
	ErrLimit          = fmt.Errorf("%d rings, or stores, are open, which is the limit; narrow include", MaxRings)
	ErrContainerLimit = fmt.Errorf("has %d rings, the most that are allowed; remove what its agents don't need", maxHolderRings)
	ErrIdentity       = errors.New("another running agent has the same identity; give agents unique names, or add what distinguishes them to identify_by")
	// ErrOpen means that the ring is open under another path.
	ErrOpen = errors.New("ring is open under another name")
	// ErrBusy means that the agent's last ring, which this one replaces, has more events.
	ErrBusy = errors.New("events of the agent's last ring are still being read")
	// ErrUnneeded means that nothing is left to count or to report.
	ErrUnneeded = errors.New("agent has exited and all its events are counted")
)

// MaxRings limits the open rings, and the stores, of an engine.
const MaxRings = 4096

// maxHolderRings limits the agents of a container, or of a pod if the container isn't known.
const maxHolderRings = 256

// Offer offers an open ring to the owner. If the owner keeps it and the agent already has a
// ring, either another file has replaced that, or the agent has restarted with a ring at another
// path. The answer is a call of [Source.Answer], also after the end of the owner.
type Offer struct {
	Agent  Agent
	Reader *ringbuf.Reader // nil if the ring is locked
	From   Source
	File   files.ID // of the ring
	Exited bool     // no process has the ring open, and it is empty
	Locked error    // why the ring can't be opened: another consumer, here or elsewhere, has locked it
}

func (m Offer) apply(o *owner, now time.Time) {
	as, err := m.Agent, ErrUnneeded
	if !o.stopped {
		if stored := o.files[m.File]; stored != nil && stored.absent() {
			m.Agent.ID = stored.ID
		}
		err = o.admit(&m)
		if a := o.agents[m.Agent.ID]; err == nil && a != nil && a.reader != nil && !o.drainOut(a, now) {
			err = ErrBusy
		}
	}
	if as.Attribution > Partly {
		as.ID = m.Agent.ID
	} else if as.ID != m.Agent.ID {
		m.Agent.Attribution = Sought
	}
	m.From.Answer(as, m.Reader, err)
	if err == nil {
		o.keep(&m, now)
	}
	if a := o.agents[m.Agent.ID]; err == nil && as.ID != m.Agent.ID && a != nil && a.reader == m.Reader {
		o.identify(a, as, now)
	}
}

// admit decides whether the owner keeps a ring. The error is why it doesn't.
func (o *owner) admit(m *Offer) error {
	a := o.agents[m.Agent.ID]
	switch {
	case o.agentOf(m.File) != nil:
		return fmt.Errorf("%w: %s", ErrOpen, o.agentOf(m.File).Path)
	case m.Locked != nil:
		return m.Locked
	case a == nil && m.Exited:
		return ErrUnneeded // NIXL never removes a ring, so there may be thousands
	case a == nil || a.absent():
		return o.makeRoom(m.Agent.Holder)
	case a.Path != m.Agent.Path && m.Exited:
		return ErrUnneeded
	case a.Path != m.Agent.Path && a.busy():
		return ErrIdentity
	case a.reader == nil && a.exit.up == UpNo && m.Exited: // it was closed because of that
		return ErrUnneeded
	}
	return nil
}

// agentOf returns the agent that has a file as its ring, or nil.
func (o *owner) agentOf(id files.ID) *agent {
	if a := o.files[id]; a != nil && a.reader != nil && a.file == id {
		return a
	}
	return nil
}

// own makes a file the ring of an agent, or none if id is zero.
func (o *owner) own(a *agent, id files.ID) {
	if o.files[a.file] == a {
		delete(o.files, a.file)
	}
	if a.file = id; id != (files.ID{}) {
		o.files[id] = a
	}
}

// leave notes that a holder has one agent less.
func (o *owner) leave(h Holder) {
	if o.rings[h]--; o.rings[h] == 0 {
		delete(o.rings, h)
	}
}

// makeRoom makes room for an agent of a holder. If a limit is reached, the agent that exited
// first gives way.
func (o *owner) makeRoom(h Holder) error {
	switch {
	case h.Isolated() && o.rings[h] >= maxHolderRings:
		if !o.giveWay(h, func(a *agent) bool { return a.Holder == h }) {
			return fmt.Errorf("%v %w", h, ErrContainerLimit)
		}
	case o.cfg.MaxRings > 0 && len(o.agents)-o.absent >= o.cfg.MaxRings:
		if !o.giveWay(h, func(*agent) bool { return true }) {
			return ErrLimit
		}
	}
	return nil
}

// giveWay retires an exited agent whose events were all counted, stored and delivered: the one that
// has been silent longest. It reports false if there is none, or if the search is too much work for
// the holder of the new agent.
func (o *owner) giveWay(to Holder, may func(*agent) bool) bool {
	if o.exhausted(to) {
		return false
	}
	o.worked(to, len(o.order))
	var first *agent
	for _, a := range o.order {
		stored := a.held() == 0 && (!o.saves || !a.dirty)
		// Another agent may have written events since, and have exited, too.
		empty := a.reader == nil || a.reader.Idle()
		if !a.ended.IsZero() || !a.exit.final() || !empty || !stored || a.delivered != a.news || !may(a) {
			continue
		}
		if first == nil || a.lastEvent.Before(first.lastEvent) {
			first = a
		}
	}
	if first != nil {
		o.retire(first, "agent exited and gives way to another one, because the limit on open rings is reached; narrow include, or shorten stale_after")
	}
	return first != nil
}
