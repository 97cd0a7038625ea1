// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
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

// readRows calls each for every valid row, and skip for every other one, in the order of
// the file. It reads files of this package and of Python's csv module, with LF or CRLF,
// with and without a byte order mark. A row at the end of the file that doesn't end with
// a newline is incomplete, because a part of the error's text may be missing.
func readRows(r io.Reader, each func(Row), skip func(SkippedRow)) error {
	end := &lastByte{Reader: r}
	c := csv.NewReader(end)
	c.FieldsPerRecord = -1 // checked by parseRow
	c.ReuseRecord = true
	if err := readHeader(c); err != nil {
		return err
	}
	var row Row
	last := SkippedRow{} // the row before the current one; without a reason, it is valid
	report := func() {
		switch {
		case last.Reason != "":
			skip(last)
		case last.Line > 0:
			each(row)
		}
	}
	for {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			if end.byte != '\n' && last.Line > 0 {
				last.Reason = "incomplete"
			}
			report()
			return nil
		}
		report()
		var invalid *csv.ParseError
		switch {
		case errors.Is(err, csv.ErrQuote) && errors.As(err, &invalid):
			last = SkippedRow{invalid.StartLine, "incomplete: a quoted field doesn't end"}
		case errors.As(err, &invalid):
			last = SkippedRow{invalid.StartLine, invalid.Err.Error()}
		case err != nil:
			return err
		default:
			last.Line, _ = c.FieldPos(0)
			last.Reason = ""
			if row, err = parseRow(fields); err != nil {
				last.Reason = err.Error()
			}
		}
	}
}

// readHeader reads the first line. The file of a session that has just started, or crashed,
// may end within it.
func readHeader(c *csv.Reader) error {
	fields, err := c.Read()
	header := strings.TrimPrefix(strings.Join(fields, ","), "\uFEFF")
	switch {
	case errors.Is(err, io.EOF), err == nil && header+"\n" == headerLine:
		return nil
	case err == nil && strings.HasPrefix(headerLine, header):
		if _, err := c.Read(); errors.Is(err, io.EOF) {
			return nil
		}
	case err != nil && !errors.As(err, new(*csv.ParseError)):
		return err
	}
	return fmt.Errorf("%w: the first line is not its header", ErrFormat)
}

// lastByte stores the last byte that was read.
type lastByte struct {
	io.Reader
	byte byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.byte = p[n-1]
	}
	return n, err
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
