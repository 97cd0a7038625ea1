// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Reader reads a recording, line by line. It validates everything, because a recording is
// untrusted input.
type Reader struct {
	zstd   *zstd.Decoder
	header Header
	lines  *bufio.Scanner
	number int // of the line
	last   time.Time
	agents []agent
	about  int // bytes of the lines that describe the agents
}

// agent is the state of an agent in a recording.
type agent struct {
	about    *About
	layout   ringbuf.Layout
	capacity int
}

// Open reads the header of a recording. It returns [ErrFormat], [ErrVersion], [ErrTruncated], or
// [ErrDamaged]. The caller must call [Reader.Close].
func Open(in io.Reader) (*Reader, error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	r := &Reader{zstd: z}
	if err := r.start(z); err != nil {
		z.Close()
		if errors.Is(err, zstd.ErrMagicMismatch) {
			err = ErrFormat
		}
		return nil, err
	}
	return r, nil
}

// Close releases the memory. It doesn't close the underlying reader.
func (r *Reader) Close() { r.zstd.Close() }

// Is reports whether the file at a path is a recording, of any version.
func Is(path string) bool {
	// Only open regular files: opening other files may have side effects.
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()
	r, err := Open(in)
	if err != nil {
		return errors.Is(err, ErrVersion)
	}
	r.Close()
	return true
}

// start reads the header from the decompressed content.
func (r *Reader) start(content io.Reader) error {
	r.lines = bufio.NewScanner(content)
	r.lines.Buffer(nil, maxLine)
	r.lines.Split(wholeLine)
	text, err := r.next()
	if errors.Is(err, io.EOF) {
		return ErrFormat
	}
	if err != nil {
		return err
	}
	h := &r.header
	errJSON := json.Unmarshal(text, h)
	switch {
	case h.Format != format:
		return ErrFormat
	case h.Version != Version:
		return fmt.Errorf("%w (%d, this program reads %d); read it with the release that wrote it: %q", ErrVersion, h.Version, Version, h.Tool)
	case errJSON != nil:
		return fmt.Errorf("%w: line 1: %w", ErrDamaged, errJSON)
	}
	r.last = h.Start
	return nil
}

// Header returns the header.
func (r *Reader) Header() *Header { return &r.header }

// Next reads the next line into rec. It returns io.EOF at the end of a complete recording,
// [ErrTruncated] at the end of a truncated one, or [ErrDamaged].
func (r *Reader) Next(rec *Record) error {
	text, err := r.next()
	if err != nil {
		return err
	}
	if err := r.decode(text, rec); err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrDamaged, r.number, err)
	}
	return nil
}

// next returns the next line, which is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	if r.lines.Scan() {
		r.number++
		return r.lines.Bytes(), nil
	}
	err := r.lines.Err()
	switch {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it ends after line %d; the recording program crashed or is still running", ErrTruncated, r.number)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: line %d has more than %d bytes", ErrDamaged, r.number+1, maxLine)
	default:
		return nil, fmt.Errorf("%w: after line %d: %w", ErrDamaged, r.number, err)
	}
}

// wholeLine splits input into lines. Unlike [bufio.ScanLines], it doesn't return the beginning of a
// line.
func wholeLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

func (r *Reader) decode(text []byte, rec *Record) error {
	l := line{Agent: -1}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	if at := time.UnixMicro(l.Micros); at.After(r.last) { // otherwise, the clock was set back
		r.last = at
	}
	if l.State == Opened {
		if err := r.open(&l, len(text)); err != nil {
			return err
		}
	}
	if l.Agent == -1 && l.State == "" && l.Events == nil {
		*rec = Record{At: r.last, Agent: -1}
		return nil
	}
	if l.Agent < 0 || l.Agent >= len(r.agents) {
		return fmt.Errorf("agent %d was not opened before", l.Agent)
	}
	a := &r.agents[l.Agent]
	*rec = Record{At: r.last, Agent: l.Agent, State: l.State, About: a.about, Layout: a.layout, Capacity: a.capacity}
	switch l.State {
	case Opened, Missed, Full, Closed, "":
	default:
		return fmt.Errorf("unknown state %q", l.State)
	}
	for i := range l.Events {
		e, err := l.Events[i].event(a.layout)
		if err != nil {
			return err
		}
		rec.Events = append(rec.Events, e)
	}
	return nil
}

// open adds an agent, or opens its ring again.
func (r *Reader) open(l *line, size int) error {
	layout, err := ringbuf.ParseLayout(l.Layout)
	known := l.Agent >= 0 && l.Agent < len(r.agents)
	switch {
	case err != nil:
		return err
	case l.Agent < 0 || l.Agent > len(r.agents) || l.Agent >= MaxAgents:
		return fmt.Errorf("got agent %d, want at most %d", l.Agent, min(len(r.agents), MaxAgents-1))
	case known && r.agents[l.Agent].about.Name != l.Name:
		return fmt.Errorf("agent %d has two names, %q and %q", l.Agent, r.agents[l.Agent].about.Name, l.Name)
	case !filepath.IsLocal(l.Name) || l.Name == "." || strings.ContainsRune(l.Name, 0):
		return fmt.Errorf("the name %q leads outside of the directory", l.Name)
	case l.Capacity < 2 || l.Capacity > ringbuf.MaxCapacity || bits.OnesCount64(l.Capacity) != 1:
		return fmt.Errorf("invalid capacity %d", l.Capacity)
	}
	if !known {
		if r.about += size; r.about > maxAbout {
			return fmt.Errorf("the descriptions of agents have more than %d bytes", maxAbout)
		}
		r.agents = append(r.agents, agent{about: &l.About})
	}
	a := &r.agents[l.Agent]
	a.layout, a.capacity = layout, int(l.Capacity)
	return nil
}
