// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/bridge/internal/flock"
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
	Time      time.Time     `json:"time"` // when the packet ended, to the microsecond
	Device    string        `json:"device"`
	Worker    string        `json:"worker_instance"`
	Duration  time.Duration `json:"duration_ns"`
	PacketID  int64         `json:"packet_id"`
	Layer     int           `json:"layer_idx"`
	Operation string        `json:"operation"`
	Success   bool          `json:"success"`
	MemoryMB  float64       `json:"memory_used_mb"` // MiB in files of this package
	Error     string        `json:"error_message,omitempty"`
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
	b = strconv.AppendFloat(b, float64(r.Time.UnixMicro())/1e6, 'f', 6, 64)
	b = append(b, ',')
	b = text.AppendField(b, r.Device)
	b = append(b, ',')
	b = text.AppendField(b, r.Worker)
	b = append(b, ',')
	b = strconv.AppendFloat(b, milliseconds(r.Duration), 'f', 3, 64)
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
	b = strconv.AppendFloat(b, r.MemoryMB, 'f', 2, 64)
	b = append(b, ',')
	b = text.AppendField(b, r.Error)
	return append(b, '\n')
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

// rowLog writes rows to a file, each completely or not at all. It is not safe for
// concurrent use.
type rowLog struct {
	file *os.File
	size int64 // the end of the last row

	limit int64    // of the size; 0: none
	keep  int      // number of full files; 0: all
	full  []string // the renamed files that are kept
	parts int      // the number of the newest full file
	retry int64    // the size at which to rotate after an error

	buffer []byte // reused
	lost   int64  // number of rows that couldn't be written
	err    error  // the error of the first lost row
}

// openRowLog creates the CSV and writes its header. Close creates the summary. Neither file
// must exist yet.
func openRowLog(csv, json string) (*rowLog, error) {
	if _, err := os.Lstat(json); err == nil {
		return nil, &fs.PathError{Op: "open", Path: json, Err: fs.ErrExist}
	}
	l := new(rowLog)
	if err := l.create(csv); err != nil {
		return nil, err
	}
	return l, nil
}

// create continues in a file that doesn't exist yet.
func (l *rowLog) create(path string) error {
	// Appending continues at the end after a part of a row was removed.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	flock.TryLock(f)
	if _, err := f.WriteString(headerLine); err != nil {
		// A file without a header is useless and would prevent the next attempt.
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	l.file, l.size, l.retry = f, int64(len(headerLine)), 0
	return nil
}

// rotate renames the full file and continues in another one. After an error, it continues in the
// same file, until that has grown by the limit again.
func (l *rowLog) rotate() error {
	path, file := l.file.Name(), l.file
	l.retry = l.size + l.limit
	var renamed string
	for taken := error(nil); taken == nil; _, taken = os.Lstat(renamed) { // by an earlier session of this name
		l.parts++
		renamed = partPath(path, l.parts)
	}
	if err := os.Rename(path, renamed); err != nil {
		return err
	}
	if err := l.create(path); err != nil {
		return errors.Join(err, os.Rename(renamed, path))
	}
	err := file.Close()
	if l.full = append(l.full, renamed); l.keep > 0 && len(l.full) > l.keep {
		err = errors.Join(err, os.Remove(l.full[0]))
		l.full = l.full[1:]
	}
	return err
}

// partPath returns the path of the nth full file of a session.
func partPath(path string, n int) string {
	return fmt.Sprintf("%s.%d.csv", strings.TrimSuffix(path, ".csv"), n)
}

// add writes one row.
func (l *rowLog) add(r *Row) error {
	row := appendRow(l.buffer[:0], r)
	if l.buffer = row; cap(row) > 64<<10 { // an error's text can be very long
		l.buffer = nil
	}
	var rotated error
	if end := l.size + int64(len(row)); l.limit > 0 && end > max(l.limit, l.retry) && l.size > int64(len(headerLine)) {
		rotated = l.rotate()
	}
	err := l.write(row)
	if err != nil {
		l.lost++
		if l.err == nil {
			l.err = err
		}
	}
	return errors.Join(rotated, err)
}

// write appends all of b to the file, or nothing. A full disk may have room for a part.
func (l *rowLog) write(b []byte) error {
	n, err := l.file.Write(b)
	switch {
	case err == nil:
		l.size += int64(n)
	case n > 0:
		err = errors.Join(err, l.file.Truncate(l.size))
	}
	return err
}

// close closes the file. It returns an error if rows are missing.
func (l *rowLog) close() error {
	var lost error
	if l.lost > 0 {
		lost = fmt.Errorf("rows missing in %s: %d, first error: %w", l.file.Name(), l.lost, l.err)
	}
	return errors.Join(lost, l.file.Close())
}
