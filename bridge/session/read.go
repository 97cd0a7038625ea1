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

// readRows calls each for every row, in the order of the file. It reads what
// this package writes and what Python's csv module does, with LF or CRLF at
// the ends of rows.
//
// A file that was cut ends in a part of a row, which is left out: cut is the
// line on which that part begins, 0 if there is none. A row that is wrong
// anywhere else is an error.
func readRows(r io.Reader, each func(Row)) (cut int, err error) {
	src := &lastByte{r: r}
	c := csv.NewReader(src)
	c.ReuseRecord = true
	c.FieldsPerRecord = -1 // a part of a row has fewer

	// Whether a record is the last one, which may be a part, shows only when
	// the next one is asked for. So each is held back until then.
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

// record is one record of a CSV: a row, or the header, or what is wrong with
// it.
type record struct {
	line   int // where it begins; 0: there is no record
	header bool
	row    Row
	err    error
	// open means that the file ended within the record: what there is of it
	// is the beginning of one.
	open bool
}

// readRecord reads the next record. Its error is of reading the file; what is
// wrong with the record itself is in the record.
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
			rec.err = fmt.Errorf("line %d: the header is another one", line)
			rec.open = strings.HasPrefix(string(header()), strings.Join(fields, ","))
		}
		return rec, nil
	}
	if rec.row, err = parseRow(fields); err != nil {
		rec.err = fmt.Errorf("line %d: %w", line, err)
	}
	return rec, nil
}

// cut reports whether the record, the last of a file that ends in the byte
// last, is only a part. A row is whole with its newline, since without it
// there is no telling how much of the error's text is missing.
func (r record) cut(last byte) bool {
	switch {
	case r.line == 0:
		return false
	case r.open:
		return true // a quoted field may be cut after a newline of its own
	case r.header && r.err != nil:
		return false // not the beginning of our header: another kind of file
	default:
		return last != '\n'
	}
}

// use passes a row on, or reports what is wrong with it.
func (r record) use(each func(Row)) error {
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, r.err)
	}
	if r.line > 0 && !r.header {
		each(r.row)
	}
	return nil
}

// parseRow makes a row of its fields.
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

// fieldParser reads fields and keeps the first error.
type fieldParser struct {
	fields []string
	err    error
}

// largest is the largest number that a field may have. As seconds or
// milliseconds it is more than a session takes, and it fits a time.Duration.
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
