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
// [Session.Close]. It reads the CSV and writes the summary to the file that Close
// would have written. The path is as for [Analyze]. An incomplete row at the end of
// the CSV is skipped.
//
// The CSV doesn't contain everything: tokens and contention events are 0, the session
// starts with its first packet and ends with its last one, and times are sums of the
// CSV's microseconds.
//
// If there already is a summary, Recover returns [fs.ErrExist], unless overwrite is
// true. It returns [ErrFormat] if the file is not the CSV of a session, and
// [ErrNoSession] if a directory contains none. On Linux and macOS, it also returns an
// error if the session is still running, because Close couldn't write its summary
// afterwards.
func Recover(path string, overwrite bool) (*Summary, error) {
	s, err := recoverSummary(path, overwrite)
	if err != nil {
		return nil, fmt.Errorf("recover session: %w", err)
	}
	return s, nil
}

func recoverSummary(path string, overwrite bool) (*Summary, error) {
	r, err := replayFile(path, notRunning, func(Row) {})
	if err != nil {
		return nil, err
	}
	s := r.summary()
	if overwrite {
		return &s, s.replace(r.files.json)
	}
	return &s, s.create(r.files.json)
}

func notRunning(f *os.File) error {
	if locked(f) {
		return fmt.Errorf("%s: the session is still running; wait until its program has ended", f.Name())
	}
	return nil
}

// replay holds the totals of a CSV.
type replay struct {
	files      paths
	totals     totals
	start, end time.Time
	incomplete int // the line on which an incomplete row begins, or 0
}

// replayFile reads the CSV at a path as for [Analyze], unless check returns an error. It
// calls each for every row, and adds the rows up.
func replayFile(path string, check func(*os.File) error, each func(Row)) (*replay, error) {
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := check(f); err != nil {
		return nil, err
	}
	r := &replay{files: paths{csv: path, json: strings.TrimSuffix(path, ".csv") + ".json"}}
	r.incomplete, err = readRows(f, func(row Row) {
		r.add(row)
		each(row)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *replay) add(row Row) {
	op := r.totals.operation(row.Operation)
	sel := r.totals.selection(op, row.Operation, row.Layer)
	r.totals.add(op, sel, row.Device, row.Duration, row.Success)
	if began := row.Time.Add(-row.Duration); r.start.IsZero() || began.Before(r.start) {
		r.start = began
	}
	if row.Time.After(r.end) {
		r.end = row.Time
	}
}

func (r *replay) summary() Summary {
	name := strings.TrimSuffix(filepath.Base(r.files.csv), ".csv")
	return r.totals.summary(name, r.start, r.end, r.files)
}
