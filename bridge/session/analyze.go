// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/flock"
)

// ErrNoSession means that a directory contains no CSV file.
var ErrNoSession = errors.New("no session in the directory")

const (
	slowestKept  = 5
	failuresKept = 100
	skippedKept  = 100
)

// Report is the analysis of a session's files. Its size doesn't depend on the number of
// packets.
type Report struct {
	Path string `json:"csv"`

	// Summary is computed from the CSV: tokens and contention events are 0, expert selections
	// don't have the names of experts, the session starts with its first packet and ends with
	// its last one, and times are sums of the CSV's microseconds.
	Summary Summary `json:"summary"`
	// Written is the summary that the session itself wrote. It is nil if the
	// session is still running, if its program ended without Close, or if the file
	// can't be read. In the last case, Problem is the reason.
	Written *Summary `json:"written_summary,omitempty"`
	Problem string   `json:"problem,omitempty"`

	Devices    []Group `json:"devices"`  // by decreasing time
	Workers    []Group `json:"workers"`  // by decreasing time
	Operations []Group `json:"-"`        // by decreasing time; the summary has them, too
	Layers     []Group `json:"layers"`   // by increasing index, from 0
	Slowest    []Row   `json:"slowest"`  // the five slowest packets, the slowest first
	Failures   []Row   `json:"failures"` // the first 100; Summary.FailedPackets is their total number

	Skipped     []SkippedRow `json:"-"`            // the first 100
	SkippedRows int64        `json:"skipped_rows"` // their total number
}

// Analyze reads a session of this package or of the compatible Python program. The
// path is a CSV file, or a directory, in which Analyze selects the newest CSV file.
// An empty path means [DefaultDir]. The session may still be running. If its files have a maximum
// size, the full ones that it kept are included.
//
// Invalid rows, and an incomplete one at the end, are skipped and reported. If none is valid,
// the file isn't one of a session.
//
// Analyze returns errors of reading the files, such as [fs.ErrNotExist],
// [ErrNoSession] and [ErrFormat]. A session without packets is not an error.
func Analyze(path string) (*Report, error) {
	r, err := analyze(path)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	if r.Written, err = readSummary(r.Summary.JSONSummary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Problem = err.Error()
	}
	return r, nil
}

// Recover rebuilds the summary of a session whose program ended without
// [Session.Close]. It writes the Summary of its report to the file that Close would have
// written. The path is as for [Analyze]. Packets in full files that the session has removed are
// missing.
//
// If there already is a summary, Recover returns [fs.ErrExist], unless overwrite is
// true. Other errors are those of Analyze. On Linux and macOS, Recover also returns an
// error if the session is still running, because Close couldn't write its summary
// afterwards.
func Recover(path string, overwrite bool) (*Report, error) {
	r, err := analyze(path)
	switch {
	case err != nil:
	case running(r.Path):
		err = fmt.Errorf("%s: the session is still running; wait until its program has ended", r.Path)
	default:
		err = r.Summary.write(r.Summary.JSONSummary, overwrite)
	}
	if err != nil {
		return nil, fmt.Errorf("recover session: %w", err)
	}
	return r, nil
}

func running(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return !flock.TryLock(f)
}

// locate returns path itself if it is a file, or the newest CSV in the directory.
func locate(path string) (string, error) {
	path = cmp.Or(path, DefaultDir)
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	var newest fs.FileInfo
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".csv") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // removed in the meantime, or not a regular file
		}
		// Entries are sorted. If two have the same time, the last name wins.
		if newest == nil || !info.ModTime().Before(newest.ModTime()) {
			newest = info
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%w %s", ErrNoSession, path)
	}
	return filepath.Join(path, newest.Name()), nil
}

func analyze(path string) (*Report, error) {
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	r, t := &Report{Path: path, Layers: []Group{}, Slowest: []Row{}, Failures: []Row{}}, newTotals() // never null in JSON
	var start, end time.Time
	each := func(row *Row) {
		t.add(row, selection(row.Operation, "", row.Layer)) // the CSV doesn't name experts
		r.keep(*row)
		if began := row.Time.Add(-row.Duration); start.IsZero() || began.Before(start) {
			start = began
		}
		if row.Time.After(end) {
			end = row.Time
		}
	}
	if err := readFiles(path, each, r.skip); err != nil {
		return nil, err
	}
	if len(t.operations) == 0 && r.SkippedRows > 0 && !strings.HasPrefix(r.Skipped[0].Reason, cutOff) {
		first := r.Skipped[0]
		return nil, fmt.Errorf("%s: %w: no row is valid; line %d: %s", first.Path, ErrFormat, first.Line, first.Reason)
	}
	base := strings.TrimSuffix(path, ".csv")
	r.Summary = t.summary(Summary{SessionName: filepath.Base(base), CSVLog: path, JSONSummary: base + ".json"}, start, end)
	delete(t.layers, -1) // the embedding
	r.Devices, r.Workers, r.Operations = byTime(t.devices), byTime(t.workers), byTime(t.operations)
	for _, layer := range slices.Sorted(maps.Keys(t.layers)) {
		r.Layers = append(r.Layers, t.layers[layer].named(strconv.Itoa(layer)))
	}
	return r, nil
}

// fullFiles returns the full files of a session whose files have a maximum size, the oldest first.
// The session may have removed the first ones.
func fullFiles(path string) (all []string) {
	base := strings.TrimSuffix(filepath.Base(path), ".csv") + "."
	entries, _ := os.ReadDir(filepath.Dir(path)) // without it, reading the file returns the error
	var numbers []int
	for _, e := range entries {
		number, _ := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".csv"), base)
		if n, err := strconv.Atoi(number); err == nil && e.Name() == filepath.Base(partPath(path, n)) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		all = append(all, partPath(path, n))
	}
	return all
}

// Rows calls f for every valid row of a session, in the order of the files that [Analyze] reads. The row
// is only valid during the call.
func Rows(path string, f func(*Row)) error {
	path, err := locate(path)
	if err == nil {
		err = readFiles(path, f, func(SkippedRow) {})
	}
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	return nil
}

func readFiles(path string, each func(*Row), skip func(SkippedRow)) error {
	for _, part := range append(fullFiles(path), path) {
		if err := readFile(part, each, skip); err != nil {
			return err
		}
	}
	return nil
}

// readFile calls each for every valid row of a file, and skip for every other one.
func readFile(path string, each func(*Row), skip func(SkippedRow)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = readRows(f, info.Size(), each, func(s SkippedRow) {
		s.Path = path
		skip(s)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func byTime(gs groups[string]) []Group {
	all := make([]Group, 0, len(gs))
	for name, g := range gs {
		all = append(all, g.named(name))
	}
	slices.SortFunc(all, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.TotalTimeMS, x.TotalTimeMS), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// keep keeps a row that is one of the slowest, or one of the first that failed.
func (r *Report) keep(row Row) {
	switch {
	case row.Success:
		r.Slowest = append(r.Slowest, row)
		// Rows with the same duration stay in the order of the file.
		slices.SortStableFunc(r.Slowest, func(x, y Row) int { return cmp.Compare(y.Duration, x.Duration) })
		r.Slowest = r.Slowest[:min(len(r.Slowest), slowestKept)]
	case len(r.Failures) < failuresKept:
		r.Failures = append(r.Failures, row)
	}
}

func (r *Report) skip(s SkippedRow) {
	r.SkippedRows++
	if len(r.Skipped) < skippedKept {
		r.Skipped = append(r.Skipped, s)
	}
}
