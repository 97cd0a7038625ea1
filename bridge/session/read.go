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
func readRows(file io.ReaderAt, size int64, each func(*Row), skip func(SkippedRow)) error {
	var last [1]byte
	if n, err := file.ReadAt(last[:], max(size-1, 0)); n == 0 && !errors.Is(err, io.EOF) {
		return err
	}
	c := csv.NewReader(io.NewSectionReader(file, 0, size)) // what a running session adds isn't read
	c.FieldsPerRecord = -1                                 // checked by parseRow
	c.ReuseRecord = true
	incomplete := func() bool { return c.InputOffset() == size && last[0] != '\n' }
	if err := readHeader(c, incomplete); err != nil {
		return err
	}
	for {
		fields, err := c.Read()
		var invalid *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, csv.ErrQuote) && errors.As(err, &invalid):
			skip(SkippedRow{invalid.StartLine, "incomplete: a quoted field doesn't end"})
			continue
		case errors.As(err, &invalid):
			skip(SkippedRow{invalid.StartLine, invalid.Err.Error()})
			continue
		case err != nil:
			return err
		}
		row, err := parseRow(fields)
		if incomplete() {
			err = errors.New("incomplete")
		}
		if err == nil {
			each(&row)
		} else {
			line, _ := c.FieldPos(0)
			skip(SkippedRow{line, err.Error()})
		}
	}
}

// readHeader reads the first line. The file of a session that has just started, or crashed,
// may end within it.
func readHeader(c *csv.Reader, incomplete func() bool) error {
	fields, err := c.Read()
	header := strings.TrimPrefix(strings.Join(fields, ","), "\uFEFF")
	switch {
	case errors.Is(err, io.EOF), err == nil && header+"\n" == headerLine,
		err == nil && strings.HasPrefix(headerLine, header) && incomplete():
		return nil
	case err != nil && !errors.As(err, new(*csv.ParseError)):
		return err
	}
	return fmt.Errorf("%w: the first line is not its header", ErrFormat)
}

// parseRow parses the fields of a row.
func parseRow(fields []string) (Row, error) {
	if len(fields) != len(columns) {
		return Row{}, fmt.Errorf("got %d fields, want %d", len(fields), len(columns))
	}
	var invalid error // the first one
	require := func(i int, valid bool) {
		if !valid && invalid == nil {
			invalid = fmt.Errorf("invalid %s %q", columns[i], fields[i])
		}
	}
	number := func(i int, smallest, largest float64) float64 {
		v, err := strconv.ParseFloat(fields[i], 64)
		require(i, err == nil && smallest <= v && v <= largest) // false for NaN
		return v
	}
	integer := func(i int) int64 {
		v, err := strconv.ParseInt(fields[i], 10, 64)
		require(i, err == nil)
		return v
	}
	row := Row{
		Time:      time.UnixMicro(int64(math.Round(number(0, -maxTime, maxTime) * 1e6))),
		Device:    fields[1],
		Worker:    fields[2],
		Duration:  time.Duration(math.Round(number(3, 0, milliseconds(maxDuration)) * 1e6)),
		PacketID:  integer(4),
		Layer:     int(integer(5)),
		Operation: fields[6],
		Success:   fields[7] == "True",
		MemoryMB:  number(8, 0, maxMemory),
		Error:     fields[9],
	}
	require(7, row.Success || fields[7] == "False")
	return row, invalid
}
