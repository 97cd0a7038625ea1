// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Outcome describes what happened to a ring after its checkpoint was stored.
type Outcome uint8

// The outcomes.
const (
	Resumed     Outcome = iota + 1 // the checkpoint was committed
	Finished                       // the checkpoint was not committed
	Restarted                      // the agent has restarted
	ReadByOther                    // another process has consumed events
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Resumed:
		return "resumed"
	case Finished:
		return "finished"
	case Restarted:
		return "restarted"
	case ReadByOther:
		return "read by other"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}

// Resume moves a ring that was just opened to the position of the totals. It commits
// nothing, because the mark may be newer than the stored totals:
//
//	read position       slots between From and To      outcome
//	To                                                 Resumed
//	From                unchanged                      Finished: skipped to To
//	From                changed, or not written yet    Restarted
//	0                                                  Restarted
//	between From and To unchanged                      ReadByOther: skipped to To
//	any other                                          ReadByOther
//
// If To is 0 and From isn't, a read position of 0 is Resumed only if the mark was loaded: if
// this process made the mark, nobody has committed To.
//
// For another file, layout or capacity, the outcome is Restarted. For a checkpoint without
// a ring, it is Resumed, because the totals already include the restart.
//
// A restarting agent sets its read position to 0. If From is also 0, the slots decide. The
// totals are therefore stored again after a commit from position 0, so that this case ends
// with the first commit of a run. If all slots are unchanged and there are no others, the
// file's change time decides. One case is undetectable: an agent that has written more
// events after a restart than before it, and whose first events equal all events before
// it. These are treated as already counted.
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
	if foreign && (outcome == Resumed || outcome == Finished) {
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
	case at == m.To && (at != 0 || m.From == 0 || m.Loaded):
		r.Continue(m.Changed)
		return Resumed, nil
	case at == m.From:
		return m.finish(r)
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

// overtaken reports whether the newest of the slots between the read position and To are
// unchanged. The totals include them then. pending is the number of events that were in the ring
// before the comparison: the totals don't include an event that is written during it.
func (m *Mark) overtaken(r *ringbuf.Reader, pending int) bool {
	held := m.held(r.Committed())
	if m.From >= m.Capacity || m.To >= m.Capacity || held > pending {
		return false
	}
	i := min(bits.Len(uint(held)), suffixes) - 1
	sum, err := r.Fingerprint(m.before(1<<i), m.To)
	return err == nil && sum == m.Suffixes[i]
}

// finish skips the events between From and To, if they are still the same.
func (m *Mark) finish(r *ringbuf.Reader) (Outcome, error) {
	sum, err := r.Fingerprint(m.From, m.To)
	switch {
	case errors.Is(err, ringbuf.ErrInvalid):
		return Restarted, nil // there is no such slot
	case err != nil:
		return 0, err
	case sum != m.Fingerprint, m.From == 0 && r.StartedSince(m.Changed, m.To):
		return Restarted, nil
	}
	if there, err := m.skip(r); err != nil || !there {
		return Restarted, err
	}
	// An agent that has restarted may have written up to To since the comparison.
	if sum, err = r.Fingerprint(m.From, m.To); err == nil && sum != m.Fingerprint {
		err = ringbuf.ErrRestarted
	}
	return Finished, err
}

// skip skips the events up to To. It reports false if the agent hasn't written up to To.
func (m *Mark) skip(r *ringbuf.Reader) (bool, error) {
	if _, err := r.Skip(m.To); errors.Is(err, ringbuf.ErrInvalid) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	r.Continue(m.Changed)
	return true, nil
}
