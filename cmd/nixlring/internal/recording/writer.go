// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// flushEvery is the maximum time between two flushes, and so the time that a crash loses.
const flushEvery = time.Second

// Writer writes a recording. It is not safe for concurrent use. After an error, it writes
// nothing more and returns the error from every call.
type Writer struct {
	out   *zstd.Encoder
	lines *json.Encoder
	err   error

	start   time.Time
	last    int64 // time of the last line, in microseconds since the epoch
	flushed time.Time
}

// NewWriter starts a recording. The caller must call [Writer.Close].
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	w := &Writer{out: z, lines: json.NewEncoder(z), start: h.Start, last: h.Start.UnixMicro(), flushed: h.Start}
	h.Format, h.Version = format, Version
	h.Tool, h.Host, h.Directory = clean(h.Tool), clean(h.Host), clean(h.Directory)
	h.Start = h.Start.UTC().Truncate(time.Microsecond)
	w.fail(w.lines.Encode(h))
	return w, w.Flush(w.start)
}

// Open writes that the ring of an agent was opened. Numbers of agents begin with 0.
func (w *Writer) Open(now time.Time, agent int, about About, l ringbuf.Layout, capacity int) error {
	known := About{Name: clean(about.Name), Path: clean(about.Path), Attributes: make(map[string]string)}
	for k, v := range about.Attributes {
		known.Attributes[clean(k)] = clean(v)
	}
	return w.write(now, line{Agent: agent, State: Opened, Layout: l.String(), Capacity: uint64(capacity), About: known})
}

// State writes that the state of an agent's ring has changed, except for [Opened].
func (w *Writer) State(now time.Time, agent int, s State) error {
	return w.write(now, line{Agent: agent, State: s})
}

// Events writes events of an open ring.
func (w *Writer) Events(now time.Time, agent int, b ringbuf.Batch) error {
	for from := 0; from < b.Len(); from += maxEvents {
		l := line{Agent: agent}
		for i := from; i < min(from+maxEvents, b.Len()); i++ {
			e := b.Event(i)
			l.Events = append(l.Events, newEvent(b.Layout(), &e))
		}
		_ = w.write(now, l)
	}
	return w.err
}

// write writes a line. If the clock is set back, its time is that of the last line.
func (w *Writer) write(now time.Time, l line) error {
	w.last = max(w.last, w.micros(now))
	if l.Micros = w.last; w.err == nil {
		w.fail(w.lines.Encode(l))
	}
	return w.Tick(now)
}

// Tick calls Flush if the last flush is long ago.
func (w *Writer) Tick(now time.Time) error {
	if now.Sub(w.flushed) < flushEvery {
		return w.err
	}
	return w.Flush(now)
}

// Flush makes the recording readable up to now, even if the program crashes. It doesn't sync
// the file to disk.
func (w *Writer) Flush(now time.Time) error {
	w.mark(now)
	if w.flushed = now; w.err == nil {
		w.fail(w.out.Flush())
	}
	return w.err
}

// Close ends the recording.
func (w *Writer) Close(now time.Time) error {
	w.mark(now)
	if err := w.out.Close(); w.err == nil {
		w.fail(err)
	}
	return w.err
}

// mark writes a line with only a time. Without it, a time in which nothing moves would be lost.
func (w *Writer) mark(now time.Time) {
	if at := w.micros(now); w.err == nil && at > w.last {
		w.last = at
		w.fail(w.lines.Encode(mark{at}))
	}
}

// micros returns a time in microseconds since the epoch, independently of changes of the clock.
func (w *Writer) micros(now time.Time) int64 {
	return w.start.UnixMicro() + now.Sub(w.start).Microseconds()
}

func (w *Writer) fail(err error) {
	if err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
	}
}
