// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Restore returns the agent of a checkpoint, and when its totals started. The
// error is [tally.ErrCheckpoint] or [tally.ErrShape]: the totals must start
// over then. The mark is valid all the same, and events up to it must not be
// counted again.
func (c *Checkpoint) Restore(shape *tally.Shape) (a *tally.Agent, start time.Time, err error) {
	a = tally.NewAgent(shape)
	if err := a.RestoreTotals(c.totals); err != nil {
		return nil, time.Time{}, fmt.Errorf("totals can't be restored: %w", err)
	}
	return a, time.Unix(0, c.Start), nil
}

// Outcome is what has become of a ring since its checkpoint was stored.
type Outcome uint8

// The outcomes.
const (
	Resumed     Outcome = iota + 1 // the ring is as the checkpoint left it
	Finished                       // the commit after the checkpoint was outstanding, and is done now
	Restarted                      // the agent has restarted
	ReadByOther                    // another consumer has read from the ring
)

// String is the outcome's name.
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

// Resume moves a ring that was just opened to where the totals stand:
//
//	read position       slots between the positions   outcome
//	To                                                 Resumed
//	From                as at the checkpoint           Finished: moved to To
//	From                others, or not written yet     Restarted
//	0                                                  Restarted
//	between the two     as at the checkpoint           ReadByOther: moved to To
//	0, between the two  not written yet                Restarted
//	any other                                          ReadByOther
//
// A ring of another file, layout or capacity is Restarted; a checkpoint
// without a ring is Resumed, as a restart is part of its totals.
//
// A restarting agent sets its read position to 0. If From is 0 too, which only
// the first commit of a run has, the slots decide. One case remains: an agent
// whose first events after its restart equal those before it, bit by bit. They
// are treated as already counted.
//
// The errors are those of the reader: the ring must be opened again.
func (m *Mark) Resume(r *ringbuf.Reader) (Outcome, error) {
	if m.Layout == 0 {
		return Resumed, nil
	}
	// The ring may have been opened a while ago: look where its position is now.
	var foreign *ringbuf.ForeignReadError
	if err := r.Skip(r.Position()); err != nil && !errors.As(err, &foreign) {
		return 0, err
	}
	outcome, err := m.compare(r)
	if foreign != nil && (outcome == Resumed || outcome == Finished) {
		outcome = ReadByOther
	}
	return outcome, err
}

func (m *Mark) compare(r *ringbuf.Reader) (Outcome, error) {
	id, at := r.ID(), r.Committed()
	switch {
	case m.Layout != r.Layout(), m.Capacity != uint64(r.Capacity()), m.Dev != id.Dev, m.Ino != id.Ino:
		return Restarted, nil
	case at == m.To:
		return Resumed, nil
	case at == m.From:
		return m.finish(r)
	case m.overtaken(r):
		// The other consumer took events that are in the totals already, and no
		// more than those.
		there, err := m.moveTo(r)
		if !there && err == nil && at == 0 {
			return Restarted, nil // the agent hasn't written as much since
		}
		return ReadByOther, err
	case at == 0:
		return Restarted, nil
	default:
		return ReadByOther, nil
	}
}

// overtaken reports whether the read position is between the two of the mark,
// and the slots from there to To are as they were.
func (m *Mark) overtaken(r *ringbuf.Reader) bool {
	at := r.Committed()
	if m.From >= m.Capacity || m.To >= m.Capacity || m.held(at) >= m.held(m.From) {
		return false
	}
	i := min(bits.Len(uint(m.held(at))), suffixes) - 1
	sum, err := r.Fingerprint(m.before(1<<i), m.To)
	return err == nil && sum == m.Suffixes[i]
}

// finish does the commit that a crash has kept from following the checkpoint.
func (m *Mark) finish(r *ringbuf.Reader) (Outcome, error) {
	sum, err := r.Fingerprint(m.From, m.To)
	switch {
	case errors.Is(err, ringbuf.ErrInvalid):
		return Restarted, nil // there is no such slot
	case err != nil:
		return 0, err
	case sum != m.Fingerprint:
		return Restarted, nil
	}
	if there, err := m.moveTo(r); err != nil || !there {
		return Restarted, err
	}
	return Finished, nil
}

// moveTo passes over the events up to To, and commits them. It reports false if
// the agent hasn't written as much.
func (m *Mark) moveTo(r *ringbuf.Reader) (bool, error) {
	if err := r.Skip(m.To); errors.Is(err, ringbuf.ErrInvalid) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, r.Commit()
}
