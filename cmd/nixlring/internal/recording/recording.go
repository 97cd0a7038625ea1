// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording reads and writes recordings: the frames of a watch, each a line of JSON, compressed with zstd.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// A recording may come from a stranger, so what it can make its reader hold has limits.
const (
	maxLine   = 256 << 20 // bytes of a frame; those of 10,000 agents have about 30 MiB
	maxWindow = 64 << 20  // bytes that decompression needs
)

// Errors of a reader.
var (
	ErrFormat    = errors.New("not a recording")
	ErrTruncated = errors.New("truncated recording")
	ErrDamaged   = errors.New("damaged recording")
)

// magic begins a zstd stream (RFC 8878); plain a recording that isn't compressed, such as the output of nixlring top.
const magic, plain = "\x28\xb5\x2f\xfd", `{"time":`

// Is reports whether a path leads to a recording.
func Is(path string) bool {
	info, err := os.Stat(path) // opening a FIFO could block
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()
	r, err := NewReader(in)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = r.Next()
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrTruncated)
}

// Writer writes a recording.
type Writer struct{ zip *zstd.Encoder }

// NewWriter returns a writer. The caller must close it.
func NewWriter(out io.Writer) (*Writer, error) {
	zip, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	return &Writer{zip}, err
}

// Write writes a frame. A reader can read it at once.
func (w *Writer) Write(f *diagnose.Frame) error {
	out := json.NewEncoder(w.zip)
	out.SetEscapeHTML(false)
	return errors.Join(out.Encode(f), w.zip.Flush())
}

// Close ends the recording. It doesn't close the output.
func (w *Writer) Close() error { return w.zip.Close() }

// Reader reads a recording.
type Reader struct {
	lines *bufio.Reader
	zip   *zstd.Decoder // nil for plain JSON
	n     int           // lines so far
	last  time.Time
}

// NewReader returns a reader. The caller must close it.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{lines: bufio.NewReader(in)}
	switch head, _ := r.lines.Peek(len(plain)); { // an empty file isn't a recording, either
	case bytes.HasPrefix(head, []byte(magic)):
		zip, err := zstd.NewReader(r.lines, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		r.zip, r.lines = zip, bufio.NewReader(zip)
	case string(head) != plain:
		return nil, ErrFormat
	}
	return r, nil
}

// Close releases the reader's memory. It doesn't close the input.
func (r *Reader) Close() {
	if r.zip != nil {
		r.zip.Close()
	}
}

// Next returns the next frame that is later than the one before, because a clock can be set back. The error is [io.EOF] at
// the end of a complete recording, or [ErrTruncated] or [ErrDamaged].
func (r *Reader) Next() (*diagnose.Frame, error) {
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		r.n++
		f := new(diagnose.Frame)
		if err := json.Unmarshal(line, f); err != nil {
			return nil, r.damaged(err)
		}
		if err := check(f); err != nil {
			return nil, r.damaged(err)
		}
		if f.Time.After(r.last) {
			r.last = f.Time
			return f, nil
		}
	}
}

func (r *Reader) damaged(err error) error {
	if r.n <= 1 && r.last.IsZero() {
		return ErrFormat
	}
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, r.n, err)
}

// line returns the next line. The last one of a complete recording also ends with a newline.
func (r *Reader) line() (line []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxLine:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: line %d has more than %d bytes", ErrDamaged, r.n+1, maxLine)
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: it ends after line %d; the recording program crashed or is still running", ErrTruncated, r.n)
		default:
			return nil, fmt.Errorf("%w: after line %d: %w", ErrDamaged, r.n, err)
		}
	}
}

// check makes sure that a frame has the properties of those that a program takes itself.
func check(f *diagnose.Frame) error {
	if f.Time.IsZero() {
		return errors.New("it has no time")
	}
	slices.SortFunc(f.Agents, func(a, b diagnose.Agent) int { return strings.Compare(a.ID, b.ID) })
	for i := range f.Notes {
		f.Notes[i] = units.Printable(f.Notes[i])
	}
	for i := range f.Agents {
		a := &f.Agents[i]
		if i > 0 && f.Agents[i-1].ID == a.ID {
			return fmt.Errorf("two agents have the ID %q", a.ID)
		}
		for _, text := range []*string{&a.Name, &a.Cluster, &a.Namespace, &a.Service, &a.Pod, &a.Host, &a.Layout} {
			*text = units.Printable(*text)
		}
		if a.Ring != nil && a.Ring.Consumer != nil {
			a.Ring.Consumer.Name = units.Printable(a.Ring.Consumer.Name)
		}
		if err := cmp.Or(checkHistogram(a.Times), checkHistogram(a.Sizes)); err != nil {
			return fmt.Errorf("agent %q: %w", a.ID, err)
		}
	}
	for i := range f.Links {
		f.Links[i].Name = units.Printable(f.Links[i].Name)
	}
	for i := range f.Processes {
		f.Processes[i].Command = units.Printable(f.Processes[i].Command)
	}
	return nil
}

func checkHistogram(h diagnose.Histogram) error {
	if len(h.Counts) != 0 && len(h.Counts) != len(h.Bounds)+1 || len(h.Counts) == 0 && len(h.Bounds) != 0 || !slices.IsSorted(h.Bounds) {
		return errors.New("a histogram has invalid bounds")
	}
	return nil
}
