package watch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Store keeps checkpoints over the death of the process. It need not survive
// that of the machine.
type Store interface {
	// Get returns what was stored under key, nil where nothing was.
	Get(ctx context.Context, key string) ([]byte, error)
	// Apply stores all of the values, or none.
	Apply(ctx context.Context, ops []Op) error
}

// Op stores a value, or removes it where it is nil.
type Op struct {
	Key   string
	Value []byte
}

// checkpoint is what is stored of an agent: where in which ring its totals
// stand.
//
// The ring itself is the log. Events are read and counted, and stay in the
// ring; then the totals are stored together with the position that they
// reach; only then the position is moved. A process that dies in between
// finds a position that is still where the checkpoint came from, and moves it
// to where the checkpoint leads, without counting the events again.
type checkpoint struct {
	mark
	totals []byte
}

// mark is the fixed part of a checkpoint, stored as it is here, little endian.
type mark struct {
	Version     uint8
	Layout      ringbuf.Layout // 0 where the agent had no ring at the time
	Dev, Ino    uint64
	Capacity    uint64
	From, To    uint64 // positions in the ring
	Fingerprint uint32 // of the slots between them
	Start       int64  // of the totals, in nanoseconds since the epoch
	Saved       int64
}

const markVersion = 2

var errCheckpoint = errors.New("invalid checkpoint")

// newMark is where an agent, which is locked, stands now.
func newMark(a *Agent, now time.Time) (mark, error) {
	m := mark{Version: markVersion, Start: a.start.UnixNano(), Saved: now.UnixNano()}
	if r := a.reader; r != nil {
		sum, err := r.Fingerprint(r.Committed(), r.Position())
		if err != nil {
			return m, err
		}
		m.Layout, m.Capacity = r.Layout(), uint64(r.Capacity())
		m.Dev, m.Ino = r.ID().Dev, r.ID().Ino
		m.From, m.To, m.Fingerprint = r.Committed(), r.Position(), sum
	}
	return m, nil
}

// appendCheckpoint appends the checkpoint of an agent, which is locked, to b,
// and returns the position that it reaches.
func appendCheckpoint(b []byte, a *Agent, now time.Time) (_ []byte, to uint64, err error) {
	m, err := newMark(a, now)
	if err == nil {
		b = a.tally.AppendTotals(m.append(b))
	}
	return b, m.To, err
}

// append does what binary.Append would, which takes as long as the rest of a
// checkpoint.
func (m *mark) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, m.Version, byte(m.Layout))
	for _, v := range [...]uint64{m.Dev, m.Ino, m.Capacity, m.From, m.To} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, m.Fingerprint)
	b = le.AppendUint64(b, uint64(m.Start))
	return le.AppendUint64(b, uint64(m.Saved))
}

func parseCheckpoint(b []byte) (checkpoint, error) {
	var c checkpoint
	n, err := binary.Decode(b, binary.LittleEndian, &c.mark)
	if err != nil {
		return c, fmt.Errorf("%w: %d bytes", errCheckpoint, len(b))
	}
	if c.Version != markVersion {
		return c, fmt.Errorf("%w: version %d", errCheckpoint, c.Version)
	}
	c.totals = b[n:]
	return c, nil
}

// resumption is what a ring turned out to be that there is a checkpoint of.
type resumption uint8

const (
	resumed     resumption = iota // just as the checkpoint left it
	finished                      // the last commit was under way, and is done now
	startedAnew                   // its agent has started anew since
	readByOther                   // somebody else has read from it since
)

// resume brings a ring to where the checkpoint's totals stand.
//
// An agent that started anew has set its read position to 0. Where the
// checkpoint came from 0 too, which only the first commit of a run does, the
// slots themselves tell: they are still the ones that were counted, or
// others. That leaves one case undecided: an agent whose first events, since
// it started anew, are to the bit those of its run before. They are taken for
// counted.
func (c *checkpoint) resume(r *ringbuf.Reader) (resumption, error) {
	id := r.ID()
	same := c.Layout == r.Layout() && c.Capacity == uint64(r.Capacity()) && c.Dev == id.Dev && c.Ino == id.Ino
	switch at := r.Committed(); {
	case c.Layout == 0:
		return resumed, nil // that the agent has started anew is in the totals
	case !same:
		return startedAnew, nil
	case at == c.To:
		return resumed, nil
	case at == c.From:
		sum, err := r.Fingerprint(c.From, c.To)
		if err != nil {
			return 0, err
		}
		if sum != c.Fingerprint {
			return startedAnew, nil
		}
		if err := r.Skip(c.To); errors.Is(err, ringbuf.ErrInvalid) {
			return startedAnew, nil // it hasn't come so far yet
		} else if err != nil {
			return 0, err
		}
		return finished, r.Commit()
	case at == 0:
		return startedAnew, nil
	default:
		return readByOther, nil
	}
}

// restore gives an agent the totals of a checkpoint.
func (c *checkpoint) restore(a *Agent, shape *tally.Shape) error {
	t := tally.NewAgent(shape)
	if err := t.RestoreTotals(c.totals); err != nil {
		return err
	}
	a.tally, a.start = t, time.Unix(0, c.Start)
	return nil
}
