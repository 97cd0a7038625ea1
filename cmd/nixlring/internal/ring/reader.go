// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"io/fs"
	"os"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Handler receives the events of rings. Poll calls its methods.
type Handler interface {
	// Opened is called when a ring was opened, for the first time or after a restart
	// of its agent.
	Opened(r *Reader)
	// Events receives new events. They are only valid during the call.
	Events(r *Reader, b ringbuf.Batch)
	// Missed is called when events may have been missed. err is the reason. The ring
	// stays open.
	Missed(r *Reader, err error)
	// Ended is called when the ring was closed: its agent restarted, its file was
	// replaced or truncated, or it can no longer be read. Later polls try to open it
	// again.
	Ended(r *Reader, err error)
}

// ErrReplaced means that the ring's file was replaced by another one.
var ErrReplaced = errors.New("the ring's file was replaced by another one")

// Reader reads the ring at one path. It isn't safe for concurrent use.
type Reader struct {
	path   string
	mode   ringbuf.Mode
	handle Handler
	events func(ringbuf.Batch) // created once, so that Poll doesn't allocate

	reader *ringbuf.Reader // nil if the ring isn't open
	read   uint64
	fill   int
}

// New returns a Reader. It doesn't open the file before the first Poll.
func New(path string, mode ringbuf.Mode, h Handler) *Reader {
	r := &Reader{path: path, mode: mode, handle: h}
	r.events = func(b ringbuf.Batch) {
		r.read += uint64(b.Len())
		h.Events(r, b)
	}
	return r
}

// Path returns the ring's path.
func (r *Reader) Path() string { return r.path }

// Layout returns the layout of the open ring, or 0.
func (r *Reader) Layout() ringbuf.Layout {
	if r.reader == nil {
		return 0
	}
	return r.reader.Layout()
}

// Capacity returns the number of slots of the open ring, or 0.
func (r *Reader) Capacity() int {
	if r.reader == nil {
		return 0
	}
	return r.reader.Capacity()
}

// Read returns the number of events passed to the Handler.
func (r *Reader) Read() uint64 { return r.read }

// Fill returns the number of events in the ring at the last poll, including those that
// the poll passed to the Handler.
func (r *Reader) Fill() int { return r.fill }

// Left returns the number of events in the open ring, or 0. It consumes nothing. In
// observe mode, the ring must not be polled afterwards.
func (r *Reader) Left() int {
	if r.reader == nil {
		return 0
	}
	n, err := r.reader.Read(1, func(ringbuf.Batch) {})
	if err != nil {
		return 0
	}
	return n
}

// Poll opens the ring if necessary and passes at most limit pending events to the
// Handler; 0 means no limit. It returns an error if the ring can't be opened.
//
// If the agent has restarted, Poll closes the ring, and the next Poll opens it again:
// the agent may not have rewritten the whole header yet, and a mixed header would make
// old events look new.
func (r *Reader) Poll(limit int) (err error) {
	if err := r.Open(); err != nil {
		return err
	}
	r.fill, err = r.reader.Read(limit, r.events)
	return r.settle(err)
}

// Open opens the ring, unless it is open.
func (r *Reader) Open() error {
	if r.reader != nil {
		return nil
	}
	return r.open()
}

func (r *Reader) open() error {
	reader, err := ringbuf.OpenReader(r.path, r.mode)
	if err != nil {
		return err
	}
	r.reader = reader
	r.handle.Opened(r)
	return nil
}

// settle handles an error of the open ring.
func (r *Reader) settle(err error) error {
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

// Commit frees the slots of the events passed to the Handler. It has no effect in
// observe mode.
func (r *Reader) Commit() error {
	if r.reader == nil {
		return nil
	}
	return r.settle(r.reader.Commit())
}

// Check closes the ring if its file was replaced or truncated. If the file was only
// removed, the ring stays open, because its agent continues to write to it.
func (r *Reader) Check() error {
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
		err := errors.Join(r.Poll(0), r.Commit()) // the remaining events of the old file
		if r.reader != nil {
			err = errors.Join(err, r.end(ErrReplaced))
		}
		return err
	case r.reader.Truncated():
		return r.end(ringbuf.ErrShrunk)
	}
	return nil
}

// end closes the ring. The next poll opens it again if possible.
func (r *Reader) end(cause error) error {
	err := r.Close()
	r.handle.Ended(r, cause)
	return err
}

// Close closes the ring. Further calls do nothing.
func (r *Reader) Close() error {
	if r.reader == nil {
		return nil
	}
	err := r.reader.Close()
	r.reader = nil
	return err
}
