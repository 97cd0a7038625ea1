// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Recover rebuilds the summary of a session whose program ended without
// [Session.Close], from its CSV, and writes it where Close would have. The path
// is as for [Analyze]. An incomplete row at the end of the CSV is left out.
//
// The CSV doesn't have everything: tokens and contention events are 0, the
// session starts with its first packet and ends with its last, and times are
// sums of the CSV's microseconds.
//
// If there is a summary, the error is [fs.ErrExist], unless overwrite is true.
// Other errors are ErrFormat for a file that isn't a session's, ErrNoSession,
// and those of reading and writing. On Linux and macOS, recovering a session
// that is still running is an error, because its Close would find a summary.
func Recover(path string, overwrite bool) (*Summary, error) {
	s, err := recoverSummary(path, overwrite)
	if err != nil {
		return nil, fmt.Errorf("recover session: %w", err)
	}
	return s, nil
}

func recoverSummary(path string, overwrite bool) (*Summary, error) {
	csvPath, err := locate(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(csvPath)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if locked(f) {
		return nil, fmt.Errorf("%s: the session is still running; recover it after its program has ended", csvPath)
	}
	r, err := replayRows(f, func(Row) {})
	if err != nil {
		return nil, err
	}
	files := paths{csv: csvPath, json: summaryPath(csvPath)}
	s := r.summary(files)
	if overwrite {
		return &s, s.replace(files.json)
	}
	return &s, s.create(files.json)
}

// summaryPath returns the path of the summary that belongs to a CSV.
func summaryPath(csvPath string) string {
	return strings.TrimSuffix(csvPath, ".csv") + ".json"
}

// replay is what the rows of a CSV add up to.
type replay struct {
	totals     totals
	start, end time.Time
	cut        int // the line on which an incomplete row begins, 0 if none does
}

// replayRows reads a CSV, calls each for its rows and adds them up.
func replayRows(f *os.File, each func(Row)) (*replay, error) {
	r := &replay{}
	var err error
	r.cut, err = readRows(f, func(row Row) {
		r.add(row)
		each(row)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return r, nil
}

func (r *replay) add(row Row) {
	op, _ := r.totals.operation(row.Operation)
	sel := r.totals.selection(op, row.Operation, row.Layer)
	r.totals.add(op, sel, row.Device, row.Duration, row.Success)
	if began := row.Time.Add(-row.Duration); r.start.IsZero() || began.Before(r.start) {
		r.start = began
	}
	if row.Time.After(r.end) {
		r.end = row.Time
	}
}

func (r *replay) summary(files paths) Summary {
	name := strings.TrimSuffix(filepath.Base(files.csv), ".csv")
	return r.totals.summary(name, r.start, r.end, files)
}
