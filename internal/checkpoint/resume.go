package checkpoint

import (
	"errors"
	"fmt"
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
func (c *Checkpoint) Resume(r *ringbuf.Reader) (Outcome, error) {
	id, at := r.ID(), r.Committed()
	switch {
	case c.Layout == 0:
		return Resumed, nil
	case c.Layout != r.Layout(), c.Capacity != uint64(r.Capacity()), c.Dev != id.Dev, c.Ino != id.Ino:
		return Restarted, nil
	case at == c.To:
		return Resumed, nil
	case at == c.From:
		return c.finish(r)
	case at == 0:
		return Restarted, nil
	default:
		return ReadByOther, nil
	}
}

// finish does the commit that a crash has kept from following the checkpoint.
func (c *Checkpoint) finish(r *ringbuf.Reader) (Outcome, error) {
	sum, err := r.Fingerprint(c.From, c.To)
	switch {
	case errors.Is(err, ringbuf.ErrInvalid):
		return Restarted, nil // there is no such slot
	case err != nil:
		return 0, err
	case sum != c.Fingerprint:
		return Restarted, nil
	}
	if err := r.Skip(c.To); errors.Is(err, ringbuf.ErrInvalid) {
		return Restarted, nil // the agent hasn't written as much yet
	} else if err != nil {
		return 0, err
	}
	return Finished, r.Commit()
}
