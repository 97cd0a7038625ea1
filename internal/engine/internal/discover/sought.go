// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A ring is opened and drained at once, before the process that has it mapped is known. Its
// agent is exported when the process was sought once, because the attributes of the process
// are part of the stream.

// Processed finds the processes of the rings in a directory. It must not block.
type Processed interface {
	// Sought sets the ID and the resource of an agent. It reports false if the process
	// hasn't been sought since a time. Then a search begins, and sought is called when it has
	// ended. If the ID depends on the process, the error is errSeeking.
	Sought(a drain.Agent, r *ringbuf.Reader, since time.Time, sought func()) (drain.Agent, bool, error)
	// Maps reports whether a process has a ring mapped, according to a search since a
	// time, and whether that is known. It reports decided and begins a search as Sought does.
	Maps(name string, r *ringbuf.Reader, since time.Time, sought func()) (maps, known, decided bool)
	// Persists reports whether the process that was found still has the ring mapped.
	Persists(name string, r *ringbuf.Reader) bool
}

// identify identifies the agent of a ring.
func (t *tracker) identify(r *record, ring *ringbuf.Reader) (drain.Agent, error) {
	if t.cfg.Processes == nil {
		return t.cfg.Identify(r.Agent, ring), nil
	}
	if !r.seeking {
		r.soughtSince = time.Now()
	}
	a, decided, err := t.cfg.Processes.Sought(r.Agent, ring, r.soughtSince, t.sought)
	r.seeking, a.Unattributed = !decided, !decided
	return a, err
}

// maps reports whether a process has a ring mapped, and whether that is known. It isn't
// decided until a search has ended.
func (t *tracker) maps(r *record) (maps, known, decided bool) {
	if t.cfg.Processes == nil {
		return false, false, true
	}
	return t.cfg.Processes.Maps(r.Name, r.ring, r.soughtSince, t.sought)
}

// seekAgain makes the next probe of a ring search for its process, unless the process that was
// found still has the ring mapped, or it is known that none has.
func (t *tracker) seekAgain(r *record) {
	if t.cfg.Processes == nil || r.seeking || r.unmapped || t.cfg.Processes.Persists(r.Name, r.ring) {
		return
	}
	if _, _, decided := t.maps(r); decided {
		r.soughtSince = time.Now()
	}
}

// attribute sends what is known about the agents whose processes were sought.
func (t *tracker) attribute() {
	for _, r := range t.records {
		switch {
		case t.ctx.Err() != nil:
			return
		case r.seeking && r.ring == nil && r.state == refused:
			r.wait = 0
			t.checkPath(r)
		case r.seeking && r.ring != nil:
			agent, err := t.identify(r, r.ring)
			if err == nil && !r.seeking {
				agent.ID = r.ID
				r.Agent = t.cfg.Resource.describe(agent)
				t.send(drain.Attributed{Agent: r.Agent, Reader: r.ring})
			}
		}
		if r.ring != nil {
			t.probe(r, false)
		}
	}
}

// isSeeking reports whether the process of an agent is being sought.
func (t *tracker) isSeeking() bool {
	for _, r := range t.records {
		if r.seeking {
			return true
		}
	}
	return false
}
