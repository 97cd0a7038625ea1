// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// frameBytes is the size from which a frame is written. It is large enough for
	// good compression.
	frameBytes = 256 << 10
	// frameEvery is the maximum time between two frames, and so the time that a crash
	// loses.
	frameEvery = time.Second
)

// Writer writes a recording. It is not safe for concurrent use. After an error, it writes
// nothing more and returns the error from every call.
type Writer struct {
	w    io.Writer
	zstd *zstd.Encoder
	err  error

	start time.Time
	last  time.Duration // time of the last record
	wrote time.Duration // time of the last frame

	records []byte       // of the current frame
	kinds   map[kind]int // defined in the current frame
	stamp   uint64       // the last timestamp in the current frame, for layout V1
	frame   []byte       // buffer
	bytes   int64
}

// NewWriter starts a recording of a directory.
func NewWriter(w io.Writer, start time.Time, directory string) (*Writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, err
	}
	rec := &Writer{w: w, zstd: enc, start: start, kinds: make(map[kind]int)}
	rec.write([]byte(magic))
	rec.op(OpBegin, start)
	rec.records = binary.AppendVarint(rec.records, start.UnixMicro())
	rec.records = appendString(rec.records, directory)
	return rec, rec.Flush()
}

// Open writes that a ring was opened.
func (w *Writer) Open(now time.Time, ring int, name string, l ringbuf.Layout, capacity int) error {
	w.ringOp(OpOpen, now, ring)
	w.records = appendString(w.records, name)
	w.records = append(w.records, byte(l))
	w.records = binary.AppendUvarint(w.records, uint64(capacity))
	return w.settle(now)
}

// Events writes events of an open ring.
func (w *Writer) Events(now time.Time, ring int, b ringbuf.Batch) error {
	w.ringOp(OpEvents, now, ring)
	w.records = binary.AppendUvarint(w.records, uint64(b.Len()))
	for i := range b.Len() {
		e := b.Event(i)
		w.event(&e, b.Layout())
	}
	return w.settle(now)
}

// event appends an event. The first event of a kind in a frame also defines the kind.
func (w *Writer) event(e *ringbuf.Event, l ringbuf.Layout) {
	k := kindOf(e)
	n, known := w.kinds[k]
	if !known {
		n = len(w.kinds)
		w.kinds[k] = n
	}
	w.records = binary.AppendUvarint(w.records, uint64(n))
	if !known {
		w.kind(&k)
	}
	w.records = binary.AppendUvarint(w.records, e.Value)
	if l == ringbuf.V1 {
		w.records = binary.AppendVarint(w.records, int64(e.TimestampMicros-w.stamp)) // modulo 2^64
		w.stamp = e.TimestampMicros
	}
}

func (w *Writer) kind(k *kind) {
	w.records = binary.AppendVarint(w.records, int64(k.category))
	if k.named {
		w.records = append(w.records, 1)
		w.records = append(w.records, k.name[:]...)
		return
	}
	w.records = append(w.records, 0)
	w.records = binary.AppendUvarint(w.records, uint64(k.typ))
}

// Missed writes that events of a ring may be missing, and why.
func (w *Writer) Missed(now time.Time, ring int, why string) error {
	return w.reason(OpMissed, now, ring, why)
}

// Ended writes that a ring was closed, and why.
func (w *Writer) Ended(now time.Time, ring int, why string) error {
	return w.reason(OpEnded, now, ring, why)
}

func (w *Writer) reason(op Op, now time.Time, ring int, why string) error {
	w.ringOp(op, now, ring)
	w.records = appendString(w.records, why)
	return w.settle(now)
}

func (w *Writer) ringOp(op Op, now time.Time, ring int) {
	w.op(op, now)
	w.records = binary.AppendUvarint(w.records, uint64(ring))
}

// op starts a record. If the clock is set back, the time of the last record is used.
func (w *Writer) op(op Op, now time.Time) {
	at := max(now.Sub(w.start), w.last).Truncate(time.Microsecond)
	w.records = append(w.records, byte(op))
	w.records = binary.AppendUvarint(w.records, uint64((at - w.last).Microseconds()))
	w.last = at
}

// settle writes the frame if it is large enough or old enough.
func (w *Writer) settle(now time.Time) error {
	if len(w.records) >= frameBytes {
		return w.Flush()
	}
	return w.Tick(now)
}

// Tick writes the frame if it is old enough.
func (w *Writer) Tick(now time.Time) error {
	if now.Sub(w.start)-w.wrote < frameEvery {
		return w.err
	}
	return w.Flush()
}

// Flush writes the current frame, so that the file can be read up to here even if the
// program crashes. It doesn't sync the file to disk.
func (w *Writer) Flush() error {
	w.wrote = w.last
	if len(w.records) == 0 || w.err != nil {
		return w.err
	}
	w.frame = w.zstd.EncodeAll(w.records, append(w.frame[:0], make([]byte, frameHeader)...))
	data := w.frame[frameHeader:]
	binary.LittleEndian.PutUint32(w.frame, uint32(len(data)))
	binary.LittleEndian.PutUint32(w.frame[4:], crc32.Checksum(data, castagnoli))
	w.write(w.frame)
	w.records, w.stamp = w.records[:0], 0
	clear(w.kinds)
	return w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.bytes += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
	}
}

// Bytes returns the number of bytes written.
func (w *Writer) Bytes() int64 { return w.bytes }

// Close ends the recording. It doesn't close the underlying writer.
func (w *Writer) Close(now time.Time) error {
	if w.zstd == nil {
		return nil
	}
	w.op(OpEnd, now)
	err := errors.Join(w.Flush(), w.zstd.Close())
	w.zstd = nil
	return err
}
