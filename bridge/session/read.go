// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrFormat means that a file is not the CSV file of a session.
var ErrFormat = errors.New("not the CSV of a session")

// SkippedRow is a row of the CSV that an analysis doesn't include, because it is
// invalid or incomplete.
type SkippedRow struct {
	Line   int // of the CSV, on which the row begins
	Reason string
}

const incomplete = "incomplete"

// readRows calls each for every valid row, and skip for every other one, in the order of
// the file. It reads files of this package and of Python's csv module, with LF or CRLF,
// with and without a byte order mark. A row at the end of the file that doesn't end with
// a newline is incomplete, because a part of the error's text may be missing.
func readRows(r io.Reader, each func(Row), skip func(SkippedRow)) error {
	lines := newLineReader(r)
	c := csv.NewReader(lines)
	c.ReuseRecord = true
	c.FieldsPerRecord = -1 // checked by parseRow

	fields, err := c.Read()
	switch partOfHeader := strings.HasPrefix(headerLine, strings.TrimSuffix(string(lines.tail), "\r")); {
	case errors.Is(err, io.EOF) && partOfHeader:
		return nil // the session has just started, or crashed
	case slices.Equal(fields, columns[:]):
	case err == nil, errors.Is(err, io.EOF), errors.As(err, new(*csv.ParseError)):
		return fmt.Errorf("%w: the first line is not its header", ErrFormat)
	default:
		return err
	}
	var quoted bool // the last row has an unmatched quote
	for {
		fields, err := c.Read()
		var invalid *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if len(lines.tail) > 0 && !quoted {
				skip(SkippedRow{lines.read + 1, incomplete})
			}
			return nil
		case errors.As(err, &invalid):
			if quoted = errors.Is(err, csv.ErrQuote); quoted {
				skip(SkippedRow{invalid.StartLine, incomplete + ": a quoted field doesn't end"})
			} else {
				skip(SkippedRow{invalid.StartLine, invalid.Err.Error()})
			}
		case err != nil:
			return err
		default:
			quoted = false
			row, err := parseRow(fields)
			if err != nil {
				line, _ := c.FieldPos(0)
				skip(SkippedRow{line, err.Error()})
				continue
			}
			each(row)
		}
	}
}

// lineReader reads the complete lines of a file, without a byte order mark.
type lineReader struct {
	r    *bufio.Reader
	rest []byte // of the current line
	read int    // number of complete lines
	tail []byte // what follows the last newline, at the end of the file
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{r: bufio.NewReader(r)}
	if mark := []byte("\uFEFF"); bytes.Equal(peek(l.r, len(mark)), mark) {
		_, _ = l.r.Discard(len(mark)) // can't fail: these bytes are buffered
	}
	return l
}

// peek returns up to n bytes without reading them. The next read returns the error.
func peek(r *bufio.Reader, n int) []byte {
	b, _ := r.Peek(n)
	return b
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.r.ReadBytes('\n')
		if err != nil {
			l.tail = line
			return 0, err
		}
		l.rest = line
		l.read++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// parseRow parses the fields of a row.
func parseRow(fields []string) (Row, error) {
	if len(fields) != len(columns) {
		return Row{}, fmt.Errorf("got %d fields, want %d", len(fields), len(columns))
	}
	p := fieldParser{fields: fields}
	r := Row{
		Time:      time.UnixMicro(int64(math.Round(p.number(0, -maxTime, maxTime) * 1e6))),
		Device:    fields[1],
		Worker:    fields[2],
		Duration:  time.Duration(math.Round(p.number(3, 0, milliseconds(maxDuration)) * 1e6)),
		PacketID:  p.integer(4),
		Layer:     int(p.integer(5)),
		Operation: fields[6],
		Success:   p.truth(7),
		MemoryMB:  p.number(8, 0, maxMemory),
		Error:     fields[9],
	}
	return r, p.err
}

// fieldParser parses fields and stores the first error.
type fieldParser struct {
	fields []string
	err    error
}

func (p *fieldParser) number(i int, smallest, largest float64) float64 {
	v, err := strconv.ParseFloat(p.fields[i], 64)
	if err != nil || !(smallest <= v && v <= largest) { // also false for NaN
		p.fail(i)
		return 0
	}
	return v
}

func (p *fieldParser) integer(i int) int64 {
	v, err := strconv.ParseInt(p.fields[i], 10, 64)
	if err != nil {
		p.fail(i)
	}
	return v
}

func (p *fieldParser) truth(i int) bool {
	if p.fields[i] != "True" && p.fields[i] != "False" {
		p.fail(i)
	}
	return p.fields[i] == "True"
}

func (p *fieldParser) fail(i int) {
	if p.err == nil {
		p.err = fmt.Errorf("invalid %s %q", columns[i], p.fields[i])
	}
}
