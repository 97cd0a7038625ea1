// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
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
	Path   string
	Line   int // of the CSV, on which the row begins
	Reason string
}

// cutOff is the reason, or its beginning, for skipping the last row of a session that crashed.
const cutOff = "incomplete"

// readRows calls each for every valid row, and skip for every other one, in the order of
// the file. It reads files of this package, of Python's csv module, and of spreadsheets: with LF
// or CRLF, with and without a byte order mark, separated by commas, semicolons or tabs. A row at
// the end of the file that doesn't end with a newline is incomplete, because a part of the error's
// text may be missing.
func readRows(file io.ReaderAt, size int64, each func(*Row), skip func(SkippedRow)) error {
	var last [1]byte
	if n, err := file.ReadAt(last[:], max(size-1, 0)); n == 0 && !errors.Is(err, io.EOF) {
		return err
	}
	begin := make([]byte, min(size, int64(len(byteOrderMark+headerLine))))
	_, _ = file.ReadAt(begin, 0) // reading the header returns the error again
	start := int64(0)
	if bytes.HasPrefix(begin, []byte(byteOrderMark)) {
		start = int64(len(byteOrderMark))
	}
	c := csv.NewReader(io.NewSectionReader(file, start, size-start)) // what a running session adds isn't read
	if i := bytes.IndexAny(begin, ",;\t"); i >= 0 {
		c.Comma = rune(begin[i])
	}
	c.FieldsPerRecord = -1 // checked by parseRow
	c.ReuseRecord = true
	incomplete := func() bool { return start+c.InputOffset() == size && last[0] != '\n' }
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
			skip(SkippedRow{"", invalid.StartLine, cutOff + ": a quoted field doesn't end"})
			continue
		case errors.As(err, &invalid):
			skip(SkippedRow{"", invalid.StartLine, invalid.Err.Error()})
			continue
		case err != nil:
			return err
		}
		if c.Comma != ',' { // then, numbers may have decimal commas
			decimalPoints(fields)
		}
		row, err := parseRow(fields)
		if incomplete() {
			err = errors.New(cutOff)
		}
		if err == nil {
			each(&row)
		} else {
			line, _ := c.FieldPos(0)
			skip(SkippedRow{"", line, err.Error()})
		}
	}
}

// readHeader reads the first line. The file of a session that has just started, or crashed,
// may end within it.
func readHeader(c *csv.Reader, incomplete func() bool) error {
	fields, err := c.Read()
	header := strings.Join(fields, ",")
	switch {
	case errors.Is(err, io.EOF), err == nil && header+"\n" == headerLine,
		err == nil && strings.HasPrefix(headerLine, header) && incomplete():
		return nil
	case err != nil && !errors.As(err, new(*csv.ParseError)):
		return err
	}
	return fmt.Errorf("%w: the first line is not its header; save it as UTF-8, with the columns %s", ErrFormat, strings.TrimSpace(headerLine))
}

// byteOrderMark is what some spreadsheets write at the beginning of a file in UTF-8.
const byteOrderMark = "\uFEFF"

// decimalPoints replaces the commas in the numbers of a row.
func decimalPoints(fields []string) {
	for i, name := range columns[:min(len(fields), len(columns))] {
		if name == "timestamp" || name == "duration_ms" || name == "memory_used_mb" {
			fields[i] = strings.Replace(fields[i], ",", ".", 1)
		}
	}
}

// parseRow parses the fields of a row.
func parseRow(fields []string) (Row, error) {
	if len(fields) == len(columns)-1 {
		fields = append(fields, "") // Excel leaves out the last separator if 16 rows have no error
	}
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
		MemoryMB:  number(8, 0, maxMemory),
		Error:     fields[9],
	}
	success, err := strconv.ParseBool(fields[7]) // spreadsheets write TRUE, others true or 1
	require(7, err == nil)
	row.Success = success
	return row, invalid
}
