// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// bufferBytes is the size from which on lines are compressed.
	bufferBytes = 64 << 10
	// flushEvery is the maximum time between two flushes, and so the time that a crash loses.
	flushEvery = time.Second
	// maxKinds bounds the number of kinds of events whose text is kept.
	maxKinds = 1 << 10
)

// Writer writes a recording. It is not safe for concurrent use. After an error, it writes
// nothing more and returns the error from every call.
type Writer struct {
	out *zstd.Encoder
	err error

	start   time.Time
	last    int64 // time of the last line, in microseconds since the epoch
	flushed time.Time
	lines   []byte
	kinds   map[kind]string // texts of lines
}

// kind identifies events that only differ in value and time.
type kind struct {
	layout   ringbuf.Layout
	category ringbuf.Category
	typ      ringbuf.Type
	name     ringbuf.Name
}

// NewWriter starts a recording. The caller must call [Writer.Close].
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	w := &Writer{out: z, start: h.Start, last: h.Start.UnixMicro(), flushed: h.Start, kinds: make(map[kind]string)}
	h.Format, h.Version = format, Version
	h.Tool, h.Host, h.Directory = clean(h.Tool), clean(h.Host), clean(h.Directory)
	h.Start = h.Start.UTC().Truncate(time.Microsecond)
	w.line(h)
	return w, w.Flush(h.Start)
}

// Open writes that the ring of an agent was opened. Numbers of agents begin with 0.
func (w *Writer) Open(now time.Time, agent int, about About, l ringbuf.Layout, capacity int) error {
	known := About{Name: clean(about.Name), Path: clean(about.Path), Attributes: make(map[string]string)}
	room := maxPairs
	for _, k := range slices.Sorted(maps.Keys(about.Attributes)) {
		key, value := clean(k), clean(about.Attributes[k])
		if room -= len(key) + len(value); room >= 0 {
			known.Attributes[key] = value
		}
	}
	w.line(stateLine{Micros: w.micros(now), Agent: agent, State: Opened, Layout: l.String(), Capacity: uint64(capacity), About: known})
	return w.flushIfDue(now)
}

// State writes that the state of an agent's ring has changed, except for [Opened], and why.
func (w *Writer) State(now time.Time, agent int, s State, why string) error {
	w.line(stateLine{Micros: w.micros(now), Agent: agent, State: s, Why: clean(why)})
	return w.flushIfDue(now)
}

// Events writes events of an open ring.
func (w *Writer) Events(now time.Time, agent int, b ringbuf.Batch) error {
	begin := append([]byte(`{"time_us":`), strconv.FormatInt(w.micros(now), 10)...)
	begin = append(append(begin, `,"agent":`...), strconv.Itoa(agent)...)
	for i := range b.Len() {
		e := b.Event(i)
		w.lines = append(w.lines, begin...)
		if b.Layout() == ringbuf.V1 {
			w.lines = strconv.AppendUint(append(w.lines, `,"timestamp_us":`...), e.TimestampMicros, 10)
		}
		w.lines = append(w.lines, w.kind(b.Layout(), &e)...)
		w.lines = append(strconv.AppendUint(w.lines, e.Value, 10), '}', '\n')
		if len(w.lines) >= bufferBytes {
			w.compress()
		}
	}
	return w.flushIfDue(now)
}

// kind returns the part of a line that depends on the kind of event.
func (w *Writer) kind(l ringbuf.Layout, e *ringbuf.Event) string {
	k := kind{layout: l, category: e.Category, typ: e.Type, name: e.Name}
	text, ok := w.kinds[k]
	if !ok {
		if len(w.kinds) >= maxKinds {
			clear(w.kinds)
		}
		text = kindText(l, e)
		w.kinds[k] = text
	}
	return text
}

// kindText returns the category and the name of an event.
func kindText(l ringbuf.Layout, e *ringbuf.Event) string {
	text, err := json.Marshal(newKind(l, e))
	if err != nil {
		panic(err) // can't happen for strings and numbers
	}
	return "," + string(text[1:len(text)-1]) + `,"value":`
}

// line adds a line.
func (w *Writer) line(v any) {
	text, err := json.Marshal(v)
	if err != nil && w.err == nil { // a year that RFC 3339 can't represent
		w.err = fmt.Errorf("write recording: %w", err)
	}
	w.lines = append(append(w.lines, text...), '\n')
}

// micros returns the time of a line. If the clock is set back, it is that of the last line.
func (w *Writer) micros(now time.Time) int64 {
	w.last = max(w.last, w.start.UnixMicro()+now.Sub(w.start).Microseconds())
	return w.last
}

// flushIfDue compresses the lines if there are enough of them, or if the last flush is long
// ago.
func (w *Writer) flushIfDue(now time.Time) error {
	if len(w.lines) >= bufferBytes {
		w.compress()
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

// Flush makes the recording readable up to here, even if the program crashes. It doesn't sync
// the file to disk.
func (w *Writer) Flush(now time.Time) error {
	w.flushed = now
	if w.compress(); w.err == nil {
		w.fail(w.out.Flush())
	}
	return w.err
}

// compress compresses the lines.
func (w *Writer) compress() {
	if w.err == nil {
		_, err := w.out.Write(w.lines)
		w.fail(err)
	}
	w.lines = w.lines[:0]
}

func (w *Writer) fail(err error) {
	if err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
	}
}

// Close ends the recording.
func (w *Writer) Close() error {
	w.compress()
	if err := w.out.Close(); w.err == nil {
		w.fail(err)
	}
	return w.err
}

// clean replaces what JSON can't represent, and limits the length.
func clean(s string) string {
	s = units.Text(s)
	return strings.ToValidUTF8(s[:min(len(s), maxString)], "\uFFFD")
}
