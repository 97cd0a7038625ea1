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

// ErrFormat means that a file is not the CSV file of a session.
var ErrFormat = errors.New("not the CSV of a session")

// Row is one row of the CSV: a packet.
type Row struct {
	Time      time.Time // when the packet ended, to the microsecond
	Device    string
	Worker    string
	Duration  time.Duration
	PacketID  int64
	Layer     int
	Operation string
	Success   bool
	MemoryMB  float64 // MiB in files of this package
	Error     string
}

// readRows calls each for every row, in the order of the file. It reads files of
// this package and of Python's csv module; rows may end with LF or CRLF.
//
// An incomplete row at the end of the file is skipped: incomplete is the line on
// which it begins, or 0 if there is none. An invalid row elsewhere is an error.
func readRows(r io.Reader, each func(Row)) (incomplete int, err error) {
	src := &lastByte{r: r}
	c := csv.NewReader(src)
	c.ReuseRecord = true
	c.FieldsPerRecord = -1 // an incomplete row has fewer

	// Only the last record may be incomplete, and only the next read shows whether
	// a record is the last one. So each record is held until then.
	var held record
	for {
		next, err := readRecord(c, held.line == 0)
		switch {
		case errors.Is(err, io.EOF):
			if held.incomplete(src.b) {
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
	line   int // the line on which it begins; 0 if there is no record
	header bool
	row    Row
	err    error
	// open means that the file ended within the record.
	open bool
}

// readRecord reads the next record. It returns an error if the file can't be read;
// format errors are stored in the record.
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
			rec.err = fmt.Errorf("line %d: not the header of a session", line)
			rec.open = strings.HasPrefix(string(header()), strings.Join(fields, ","))
		}
		return rec, nil
	}
	if rec.row, err = parseRow(fields); err != nil {
		rec.err = fmt.Errorf("line %d: %w", line, err)
	}
	return rec, nil
}

// incomplete reports whether the last record of a file that ends with the byte last
// is incomplete. A row without a newline is, because a part of the error's text may
// be missing.
func (r record) incomplete(last byte) bool {
	switch {
	case r.line == 0:
		return false
	case r.open:
		return true // even after a newline, which may belong to a quoted field
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
		return Row{}, fmt.Errorf("got %d fields, want %d", len(fields), len(columns))
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

// fieldParser parses fields and stores the first error.
type fieldParser struct {
	fields []string
	err    error
}

// largest is the largest valid number. It is longer than any session, in seconds or
// in milliseconds, and fits into a time.Duration.
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
		p.err = fmt.Errorf("invalid %s %q", columns[i], p.fields[i])
	}
}

// lastByte is a reader that stores the last byte read.
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
