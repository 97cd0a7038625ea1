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
)

// ErrNoSession means that a directory contains no CSV file.
var ErrNoSession = errors.New("no session in the directory")

const (
	slowestKept  = 5
	failuresKept = 100
	skippedKept  = 100
)

// Report is the analysis of a session's files. Times, and counts per device, worker
// and layer, only include successful packets. Summary and Failures also include
// failed packets. The size of a Report doesn't depend on the number of packets.
type Report struct {
	Path string // of the CSV

	// Summary is computed from the CSV: tokens and contention events are 0, the session
	// starts with its first packet and ends with its last one, and times are sums of
	// the CSV's microseconds.
	Summary Summary
	// Written is the summary that the session itself wrote. It is nil if the
	// session is still running, if its program ended without Close, or if the file
	// can't be read. In the last case, WrittenErr is the reason.
	Written    *Summary
	WrittenErr error

	Devices  []Share // by decreasing time
	Workers  []Share // by decreasing time
	Layers   []Share // by increasing index, from 0
	Slowest  []Row   // the five slowest packets, the slowest first
	Failures []Row   // the first 100; Summary.FailedPackets is their total number

	Skipped     []SkippedRow // the first 100
	SkippedRows int64        // their total number

	// AllWorkers makes WriteTo list all workers instead of the first 20.
	AllWorkers bool
}

// Share is a device's, worker's or layer's share of a session.
type Share struct {
	Name    string // for a layer, its index
	Packets int64
	Time    time.Duration
}

// Analyze reads a session of this package or of the compatible Python program. The
// path is a CSV file, or a directory, in which Analyze selects the newest CSV file.
// An empty path means [DefaultDir]. The session may still be running.
//
// Invalid rows, and an incomplete one at the end, are skipped and reported.
//
// Analyze returns errors of reading the files, such as [fs.ErrNotExist],
// [ErrNoSession] and [ErrFormat]. A session without packets is not an error.
func Analyze(path string) (*Report, error) {
	r, err := analyze(path)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	if r.Written, err = readSummary(r.Summary.JSONSummary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.WrittenErr = err
	}
	return r, nil
}

// Recover rebuilds the summary of a session whose program ended without
// [Session.Close]. It writes the Summary of its report to the file that Close would have
// written. The path is as for [Analyze].
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
	case overwrite:
		err = r.Summary.replace(r.Summary.JSONSummary)
	default:
		err = r.Summary.create(r.Summary.JSONSummary)
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
	return locked(f)
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

// analysis adds up the rows of a session for a report.
type analysis struct {
	*Report
	totals                   *totals
	devices, workers, layers map[string]*Share
	start, end               time.Time
}

func analyze(path string) (*Report, error) {
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := analysis{
		Report: &Report{Path: path}, totals: newTotals(),
		devices: make(map[string]*Share), workers: make(map[string]*Share), layers: make(map[string]*Share),
	}
	if err := readRows(f, a.add, a.skip); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	base := strings.TrimSuffix(path, ".csv")
	a.Summary = a.totals.summary(paths{filepath.Base(base), path, base + ".json"}, a.start, a.end)
	byTime := func(x, y Share) int { return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Name, y.Name)) }
	a.Devices = sorted(a.devices, byTime)
	a.Workers = sorted(a.workers, byTime)
	a.Layers = sorted(a.layers, func(x, y Share) int {
		return cmp.Or(cmp.Compare(len(x.Name), len(y.Name)), cmp.Compare(x.Name, y.Name)) // as numbers
	})
	return a.Report, nil
}

func sorted(shares map[string]*Share, compare func(x, y Share) int) []Share {
	list := make([]Share, 0, len(shares))
	for s := range maps.Values(shares) {
		list = append(list, *s)
	}
	slices.SortFunc(list, compare)
	return list
}

func (a *analysis) skip(s SkippedRow) {
	a.SkippedRows++
	if len(a.Skipped) < skippedKept {
		a.Skipped = append(a.Skipped, s)
	}
}

func (a *analysis) add(row Row) {
	a.totals.add(&row)
	if began := row.Time.Add(-row.Duration); a.start.IsZero() || began.Before(a.start) {
		a.start = began
	}
	if row.Time.After(a.end) {
		a.end = row.Time
	}
	if !row.Success {
		if len(a.Failures) < failuresKept {
			a.Failures = append(a.Failures, row)
		}
		return
	}
	addShare(a.devices, row.Device, row.Duration)
	addShare(a.workers, row.Worker, row.Duration)
	if row.Layer >= 0 { // the embedding has layer -1
		addShare(a.layers, strconv.Itoa(row.Layer), row.Duration)
	}
	// Rows with the same duration stay in the order of the file.
	at := len(a.Slowest)
	for at > 0 && a.Slowest[at-1].Duration < row.Duration {
		at--
	}
	if at < slowestKept {
		a.Slowest = slices.Insert(a.Slowest, at, row)
		a.Slowest = a.Slowest[:min(len(a.Slowest), slowestKept)]
	}
}

func addShare(to map[string]*Share, name string, took time.Duration) {
	s := to[name]
	if s == nil {
		s = &Share{Name: name}
		to[name] = s
	}
	s.Packets++
	s.Time += took
}
