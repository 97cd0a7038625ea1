// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"io/fs"
	"os"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Handler is told what comes of rings. Its methods are called within Poll.
type Handler interface {
	// Opened says that a ring was opened: a life of its agent begins, or is
	// joined.
	Opened(r *Ring)
	// Events hands out events, which are valid inside the call only.
	Events(r *Ring, b ringbuf.Batch)
	// Missed says that events may have been missed, and why. The ring is
	// followed on.
	Missed(r *Ring, err error)
	// Ended says that the ring was closed: its agent restarted, its file was
	// replaced or truncated, or it can't be read any more. It is opened again
	// as soon as it can be.
	Ended(r *Ring, err error)
}

// ErrReplaced says that another file has taken the ring's name.
var ErrReplaced = errors.New("another file has taken the ring's name")

// Ring follows the ring at one path. It isn't safe for concurrent use.
type Ring struct {
	path   string
	name   string
	mode   ringbuf.Mode
	handle Handler
	events func(ringbuf.Batch) // made once, so that a poll allocates nothing

	reader *ringbuf.Reader // nil while there is none to read
	read   uint64
	fill   int
}

// NewRing follows the ring at a path. Nothing is opened before the first Poll.
func NewRing(path string, mode ringbuf.Mode, h Handler) *Ring {
	r := &Ring{path: path, name: path, mode: mode, handle: h}
	r.events = func(b ringbuf.Batch) {
		r.read += uint64(b.Len())
		h.Events(r, b)
	}
	return r
}

// Path is the ring's path.
func (r *Ring) Path() string { return r.path }

// Name is the ring's path, within the directory if a [Dir] follows it.
func (r *Ring) Name() string { return r.name }

// Layout is the layout of the open ring, 0 if none is open.
func (r *Ring) Layout() ringbuf.Layout {
	if r.reader == nil {
		return 0
	}
	return r.reader.Layout()
}

// Capacity is the number of slots of the open ring, 0 if none is open.
func (r *Ring) Capacity() int {
	if r.reader == nil {
		return 0
	}
	return r.reader.Capacity()
}

// Read is the number of events that were handed out.
func (r *Ring) Read() uint64 { return r.read }

// Fill is the number of events that stood in the ring at the last poll, those
// included that it has handed out.
func (r *Ring) Fill() int { return r.fill }

// Left is the number of events that stand in the ring now, 0 if none is open.
// It looks only; but an observer is not to be polled again after it.
func (r *Ring) Left() int {
	if r.reader == nil {
		return 0
	}
	n, err := r.reader.Read(1, func(ringbuf.Batch) {})
	if err != nil {
		return 0
	}
	return n
}

// Poll hands out at most limit pending events (0 is no limit), and opens the
// ring if need be. The error is why it isn't open.
//
// A ring whose agent has restarted is closed, and opened by the next poll:
// its header may not be rewritten yet, and half of it would make old events
// look new.
func (r *Ring) Poll(limit int) (err error) {
	if err := r.Open(); err != nil {
		return err
	}
	r.fill, err = r.reader.Read(limit, r.events)
	return r.settle(err)
}

// Open opens the ring, unless it is open.
func (r *Ring) Open() error {
	if r.reader != nil {
		return nil
	}
	return r.open()
}

func (r *Ring) open() error {
	reader, err := ringbuf.OpenReader(r.path, r.mode)
	if err != nil {
		return err
	}
	r.reader = reader
	r.handle.Opened(r)
	return nil
}

// settle decides what follows from an error of the open ring.
func (r *Ring) settle(err error) error {
	var foreign *ringbuf.ForeignReadError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &foreign), errors.Is(err, ringbuf.ErrLapped):
		r.handle.Missed(r, err)
		return nil
	default:
		return r.end(err)
	}
}

// Commit gives the events that were handed out back to the agent as free
// slots. An observer has none to give.
func (r *Ring) Commit() error {
	if r.reader == nil {
		return nil
	}
	return r.settle(r.reader.Commit())
}

// Check looks whether the path still stands for the open ring, and whether the
// file is whole. A file that was merely removed is read on, as its agent
// writes on into it.
func (r *Ring) Check() error {
	if r.reader == nil {
		return nil
	}
	info, err := os.Lstat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !r.reader.SameFile(info):
		err := errors.Join(r.Poll(0), r.Commit()) // what the old file still has
		if r.reader != nil {
			err = errors.Join(err, r.end(ErrReplaced))
		}
		return err
	case r.reader.Truncated():
		return r.end(ringbuf.ErrShrunk)
	}
	return nil
}

// end closes the ring. What becomes of a restart is for the next poll to find.
func (r *Ring) end(cause error) error {
	err := r.Close()
	r.handle.Ended(r, cause)
	return err
}

// Close gives up the ring. It is safe to call twice.
func (r *Ring) Close() error {
	if r.reader == nil {
		return nil
	}
	err := r.reader.Close()
	r.reader = nil
	return err
}
