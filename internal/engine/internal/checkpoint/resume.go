// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Outcome describes what happened to a ring after its checkpoint was stored.
type Outcome uint8

// The outcomes.
const (
	Resumed     Outcome = iota + 1 // the ring is at the position of the totals, whether that was committed or not
	Restarted                      // the agent has restarted
	ReadByOther                    // another process has consumed events
)

// Resume moves a ring that was just opened to the position of the totals. It commits
// nothing, because the mark may be newer than the stored totals:
//
//	read position              outcome
//	To; last slot if To is 0   Resumed: skipped to To
//	From                       Resumed: skipped to To
//	From = 0, slots changed    Restarted
//	0                          Restarted
//	between From and To        ReadByOther: skipped to To
//	any other                  ReadByOther
//
// For another file, layout or capacity, the outcome is Restarted. For a checkpoint without
// a ring, it is Resumed, because the totals already include the restart.
//
// A restarting agent sets its read position to 0. If From is also 0, the slots decide. The
// totals are therefore stored again after a commit from position 0, so that this case ends
// with the first commit of a run. One case is undetectable: an agent whose first events after
// a restart equal all events before it. These are treated as already counted.
//
// The errors are those of the reader. After an error, the ring must be opened again.
func (m *Mark) Resume(r *ringbuf.Reader) (Outcome, error) {
	if m.Layout == 0 {
		return Resumed, nil
	}
	// The ring may have been opened a while ago, so update its position.
	pending, err := r.Skip(r.Position())
	foreign := errors.Is(err, ringbuf.ErrForeignRead)
	if foreign {
		pending, err = r.Skip(r.Position()) // from the other position
	}
	if err != nil && !errors.Is(err, ringbuf.ErrForeignRead) {
		return 0, err
	}
	outcome, err := m.compare(r, pending)
	if foreign && outcome == Resumed {
		outcome = ReadByOther
	}
	return outcome, err
}

func (m *Mark) compare(r *ringbuf.Reader, pending int) (Outcome, error) {
	at := r.Committed()
	dev, ino := r.ID()
	switch {
	case m.Layout != r.Layout(), m.Capacity != uint64(r.Capacity()), m.Dev != dev, m.Ino != ino:
		return Restarted, nil
	case at == m.To && (at != 0 || m.From == 0 || m.Capacity == 2):
		return Resumed, nil
	case m.To == 0 && m.From != 0 && at != m.From && at == m.Capacity-1: // a commit to position 0 stops there
		if there, err := m.skip(r); err != nil || !there {
			return Restarted, err
		}
		return Resumed, nil
	case at == m.From:
		return m.finish(r, pending)
	case at == 0:
		return Restarted, nil
	case m.overtaken(r, pending):
		// The other process consumed only events that the totals already include.
		_, err := m.skip(r)
		return ReadByOther, err
	default:
		return ReadByOther, nil
	}
}

// overtaken reports whether the read position is between From and To.
func (m *Mark) overtaken(r *ringbuf.Reader, pending int) bool {
	held := m.held(r.Committed())
	return m.From < m.Capacity && m.To < m.Capacity && held < m.held(m.From) && held <= pending
}

// finish skips the events between From and To, if they are still the same. They are in the
// ring from the first look on. Fewer events mean that others follow the position, for example
// because a lap was committed that no checkpoint knows.
func (m *Mark) finish(r *ringbuf.Reader, pending int) (Outcome, error) {
	if m.held(m.From) > pending {
		return Restarted, nil
	}
	same := func() (bool, error) {
		if m.From != 0 {
			return true, nil
		}
		sum, err := r.Fingerprint(m.To)
		return err == nil && sum == m.Fingerprint, err
	}
	if there, err := same(); errors.Is(err, ringbuf.ErrInvalid) || err == nil && !there {
		return Restarted, nil
	} else if err != nil {
		return 0, err
	}
	if there, err := m.skip(r); err != nil || !there {
		return Restarted, err
	}
	// An agent that has restarted may have written up to To since the comparison.
	if still, err := same(); err == nil && !still {
		return Resumed, ringbuf.ErrRestarted
	}
	return Resumed, nil
}

// skip skips the events up to To. It reports false if the agent hasn't written up to To.
func (m *Mark) skip(r *ringbuf.Reader) (bool, error) {
	if _, err := r.Skip(m.To); errors.Is(err, ringbuf.ErrInvalid) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}
