package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Recover makes the summary of a session whose program ended without Close,
// from the CSV at csvPath, and writes it where Close would have. A part of a
// row at the end of the CSV is left out.
//
// What isn't in the CSV isn't in the summary either: tokens and contention
// events are 0, the session begins with its first packet and ends with its
// last, and times are sums of the CSV's microseconds.
//
// The errors are ErrFormat for a file that isn't a session's, ErrExists where
// there is a summary already, and those of reading and writing.
func Recover(csvPath string, opts ...ReadOption) (*Summary, error) {
	files := paths{csv: csvPath, json: summaryPath(csvPath)}
	r, err := replayFile(files.csv, newReadConfig(opts), func(Row) {})
	if err != nil {
		return nil, fmt.Errorf("recover session: %w", err)
	}
	s := r.summary(files)
	if err := s.write(files.json); err != nil {
		return nil, fmt.Errorf("recover session: %w", err)
	}
	return &s, nil
}

// summaryPath is the path of the summary that belongs to a CSV.
func summaryPath(csvPath string) string {
	return strings.TrimSuffix(csvPath, ".csv") + ".json"
}

// replay is what the rows of a CSV say of their session.
type replay struct {
	totals     *totals
	start, end time.Time
	cut        int // the line on which a part of a row begins, 0 if none does
}

// replayFile reads a CSV, calls each for its rows and adds them up.
func replayFile(path string, c readConfig, each func(Row)) (*replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &replay{totals: newTotals(c.operationLimit)}
	r.cut, err = readRows(f, func(row Row) {
		r.add(row)
		each(row)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
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
