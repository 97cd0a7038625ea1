// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// columns lists the columns of the CSV.
var columns = [...]string{
	"timestamp", "device", "worker_instance", "duration_ms", "packet_id",
	"layer_idx", "operation", "success", "memory_used_mb", "error_message",
}

// headerLine is the first line of the CSV.
var headerLine = strings.Join(columns[:], ",") + "\n"

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

// Limits of a row's numbers. Record replaces numbers beyond them, and the reader skips
// rows with such numbers.
const (
	maxDuration = 24 * time.Hour // a longer one was measured from an unset time
	maxTime     = 1e12           // seconds
	maxMemory   = 1e13           // MiB
)

// appendRow appends a row whose text is clean.
func appendRow(b []byte, r *Row) []byte {
	b = appendDecimal(b, r.Time.UnixMicro(), 6)
	b = append(b, ',')
	b = text.AppendField(b, r.Device)
	b = append(b, ',')
	b = text.AppendField(b, r.Worker)
	b = append(b, ',')
	b = appendDecimal(b, r.Duration.Round(time.Microsecond).Microseconds(), 3)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.PacketID, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.Layer), 10)
	b = append(b, ',')
	b = text.AppendField(b, r.Operation)
	if r.Success {
		b = append(b, ",True,"...)
	} else {
		b = append(b, ",False,"...)
	}
	b = appendDecimal(b, int64(math.Round(r.MemoryMB*100)), 2)
	b = append(b, ',')
	b = text.AppendField(b, r.Error)
	return append(b, '\n')
}

// appendDecimal appends v, in units of the last decimal, with the given number
// of decimals, at most six. It is much faster than strconv.AppendFloat.
func appendDecimal(b []byte, v int64, decimals int) []byte {
	if v < 0 {
		b = append(b, '-')
		v = -v
	}
	var fraction [6]byte
	for i := decimals - 1; i >= 0; i-- {
		fraction[i] = byte('0' + v%10)
		v /= 10
	}
	b = strconv.AppendInt(b, v, 10)
	b = append(b, '.')
	return append(b, fraction[:decimals]...)
}

// oneLine replaces what splits or ends a line for one of the tools that read a CSV.
var oneLine = strings.NewReplacer("\x00", "\uFFFD", "\r\n", `\n`, "\n", `\n`, "\r", `\r`)

// clean makes text valid UTF-8 on one line, because exporters reject a batch with an
// invalid string, and awk, grep and wc take each line for a row.
func clean(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= utf8.RuneSelf {
			return oneLine.Replace(text.Valid(s))
		}
	}
	return s
}

// file is the part of *os.File that a row log uses.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
}

// createFile creates a file that must not exist. It is opened for appending, so that
// writes continue at the end after an incomplete row was truncated.
func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	lock(f)
	return f, nil
}

// rowLog writes rows to a file, each completely or not at all. It is not safe for
// concurrent use.
type rowLog struct {
	file file
	path string
	size int64 // the end of the last complete row
	torn bool  // an incomplete row may follow

	buffer []byte // reused
	lost   int64  // number of rows that couldn't be written
	err    error  // the error of the first lost row
}

// openRowLog creates the file and writes its header.
func openRowLog(path string, create func(string) (file, error)) (*rowLog, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	l := &rowLog{file: f, path: path}
	if err := l.write([]byte(headerLine)); err != nil {
		// A file without a header is useless and would prevent the next attempt.
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return l, nil
}

// add writes one row.
func (l *rowLog) add(r *Row) error {
	row := appendRow(l.buffer[:0], r)
	if l.buffer = row; cap(row) > 64<<10 { // an error's text can be very long
		l.buffer = nil
	}
	err := l.write(row)
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
	return err
}

// write appends all of b to the file, or nothing.
func (l *rowLog) write(b []byte) error {
	if l.torn {
		if err := l.file.Truncate(l.size); err != nil {
			return err
		}
		l.torn = false
	}
	n, err := l.file.Write(b)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	// On a full disk, a part of the row may have been written. It must be removed
	// before the next write.
	if n > 0 {
		l.torn = l.file.Truncate(l.size) != nil
	}
	return err
}

// close closes the file. It returns an error if rows are missing.
func (l *rowLog) close() error {
	var lost error
	if l.lost > 0 {
		lost = fmt.Errorf("%d rows are missing in %s, first error: %w", l.lost, l.path, l.err)
	}
	return errors.Join(lost, l.file.Close())
}
