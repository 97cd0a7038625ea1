// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
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

// ErrFormat means that a file is not the CSV of a session.
var ErrFormat = errors.New("not the CSV of a session")

// Row is one packet as the CSV has it.
type Row struct {
	Time      time.Time // when the packet ended, to the microsecond
	Device    string
	Worker    string
	Duration  time.Duration
	PacketID  int64
	Layer     int
	Operation string
	Success   bool
	MemoryMB  float64 // MiB in this package's files
	Error     string
}

// readRows calls each for every row, in the order of the file. It reads files
// of this package and of Python's csv module; rows may end with LF or CRLF.
//
// An incomplete row at the end of the file is left out: cut is the line on
// which it begins, 0 if there is none. An invalid row anywhere else is an
// error.
func readRows(r io.Reader, each func(Row)) (cut int, err error) {
	src := &lastByte{r: r}
	c := csv.NewReader(src)
	c.ReuseRecord = true
	c.FieldsPerRecord = -1 // an incomplete row has fewer

	// Only the last record may be incomplete, and only the next read shows
	// which one is the last. So each record is held back until then.
	var held record
	for {
		next, err := readRecord(c, held.line == 0)
		switch {
		case errors.Is(err, io.EOF):
			if held.cut(src.b) {
				return held.line, nil
			}
			return 0, held.use(each)
		case err != nil:
			return 0, err
		}
		if err := held.use(each); err != nil {
			return 0, err
		}
		held = next
	}
}

// record is one record of a CSV: the header, a row, or an invalid one.
type record struct {
	line   int // where it begins; 0 if there is no record
	header bool
	row    Row
	err    error
	// open means that the file ended within the record.
	open bool
}

// readRecord reads the next record. It returns errors of reading the file; an
// error of the record's format is in the record.
func readRecord(c *csv.Reader, first bool) (record, error) {
	fields, err := c.Read()
	var wrong *csv.ParseError
	switch {
	case errors.As(err, &wrong):
		open := errors.Is(err, csv.ErrQuote) && !first // our header has no quotes
		return record{line: wrong.StartLine, header: first, err: err, open: open}, nil
	case err != nil:
		return record{}, err
	}
	line, _ := c.FieldPos(0)
	rec := record{line: line, header: first}
	if first {
		if !slices.Equal(fields, columns[:]) {
			rec.err = fmt.Errorf("line %d: not a session's header", line)
			rec.open = strings.HasPrefix(string(header()), strings.Join(fields, ","))
		}
		return rec, nil
	}
	if rec.row, err = parseRow(fields); err != nil {
		rec.err = fmt.Errorf("line %d: %w", line, err)
	}
	return rec, nil
}

// cut reports whether the record, the last of a file that ends with the byte
// last, is incomplete. A row without its newline is: a part of the error's text
// may be missing.
func (r record) cut(last byte) bool {
	switch {
	case r.line == 0:
		return false
	case r.open:
		return true // a quoted field may be cut after a newline of its own
	case r.header && r.err != nil:
		return false // another kind of file
	default:
		return last != '\n'
	}
}

// use calls each with a row, or returns the record's error.
func (r record) use(each func(Row)) error {
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, r.err)
	}
	if r.line > 0 && !r.header {
		each(r.row)
	}
	return nil
}

// parseRow parses the fields of a row.
func parseRow(fields []string) (Row, error) {
	if len(fields) != len(columns) {
		return Row{}, fmt.Errorf("%d fields instead of %d", len(fields), len(columns))
	}
	p := fieldParser{fields: fields}
	r := Row{
		Time:      time.UnixMicro(int64(math.Round(p.number(0) * 1e6))),
		Device:    fields[1],
		Worker:    fields[2],
		Duration:  time.Duration(math.Round(p.number(3) * 1e6)),
		PacketID:  p.integer(4),
		Layer:     int(p.integer(5)),
		Operation: fields[6],
		Success:   p.truth(7),
		MemoryMB:  p.number(8),
		Error:     fields[9],
	}
	return r, p.err
}

// fieldParser parses fields and keeps the first error.
type fieldParser struct {
	fields []string
	err    error
}

// largest is the largest number in a field. As seconds or milliseconds, it is
// longer than any session and fits a time.Duration.
const largest = 1e12

func (p *fieldParser) number(i int) float64 {
	v, err := strconv.ParseFloat(p.fields[i], 64)
	if err != nil || !(math.Abs(v) <= largest) { // also false for NaN
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
		p.err = fmt.Errorf("%s can't be %q", columns[i], p.fields[i])
	}
}

// lastByte remembers the last byte that was read.
type lastByte struct {
	r io.Reader
	b byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.b = p[n-1]
	}
	return n, err
}
