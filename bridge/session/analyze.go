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
	"strings"
	"time"
)

// ErrNoSession means that a directory contains no CSV file.
var ErrNoSession = errors.New("no session in the directory")

const (
	slowestKept  = 5
	failuresKept = 100
)

// Report is the analysis of a session's files. Times, and counts per device, worker
// and layer, only include successful packets. Summary and Failures also include
// failed packets. The size of a Report doesn't depend on the number of packets.
type Report struct {
	Path string // of the CSV

	// Summary is computed from the CSV, as by [Recover]: tokens are 0, and times
	// are sums of the CSV's microseconds.
	Summary Summary
	// Written is the summary that the session itself wrote. It is nil if the
	// session is still running, if its program ended without Close, or if the file
	// can't be read. In the last case, WrittenErr is the reason.
	Written    *Summary
	WrittenErr error

	Devices   []Share    // by decreasing time
	Workers   []Share    // by decreasing time
	Layers    []Share    // by increasing index, from 0
	Durations []Bucket   // from the first to the last bucket that isn't empty
	Timeline  []Interval // up to 20 intervals of equal length
	Slowest   []Row      // the five slowest packets, the slowest first
	Failures  []Row      // the first 100; Summary.FailedPackets is their total number

	// AllWorkers makes WriteTo list all workers instead of the first 20.
	AllWorkers bool

	// IncompleteLine is the line of the CSV on which an incomplete row begins, or 0
	// if there is none. That row was skipped.
	IncompleteLine int
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
// Analyze returns errors of reading the files, such as [fs.ErrNotExist],
// [ErrNoSession] and [ErrFormat]. A session without packets is not an error.
func Analyze(path string) (*Report, error) {
	csvPath, err := locate(path)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	f, err := os.Open(csvPath)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	defer f.Close()
	a := newAnalysis()
	replayed, err := replayRows(f, a.add)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	files := paths{csv: csvPath, json: summaryPath(csvPath)}
	r := &Report{
		Path:           csvPath,
		Summary:        replayed.summary(files),
		Devices:        byTime(a.devices),
		Workers:        byTime(a.workers),
		Layers:         a.byLayer(),
		Durations:      a.durations.list(),
		Timeline:       a.timeline.list(),
		Slowest:        a.slowest,
		Failures:       a.failures,
		IncompleteLine: replayed.incomplete,
	}
	if r.Written, err = readSummary(files.json); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.WrittenErr = err
	}
	return r, nil
}

// locate returns path itself if it is a file, or the newest CSV in the directory.
func locate(path string) (string, error) {
	if path == "" {
		path = DefaultDir
	}
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

// analysis collects the parts of a report other than the summary.
type analysis struct {
	devices   map[string]*Share
	workers   map[string]*Share
	layers    map[int]*Share
	durations durations
	timeline  timeline
	slowest   []Row
	failures  []Row
}

func newAnalysis() *analysis {
	return &analysis{devices: make(map[string]*Share), workers: make(map[string]*Share), layers: make(map[int]*Share)}
}

func (a *analysis) add(row Row) {
	if !row.Success {
		if len(a.failures) < failuresKept {
			a.failures = append(a.failures, row)
		}
		return
	}
	addTime(a.devices, row.Device, row.Duration)
	addTime(a.workers, row.Worker, row.Duration)
	if row.Layer >= 0 { // the embedding has layer -1
		addTime(a.layers, row.Layer, row.Duration)
	}
	a.durations.add(row.Duration)
	a.timeline.add(row)
	a.addSlowest(row)
}

func addTime[K comparable](to map[K]*Share, key K, took time.Duration) {
	s := to[key]
	if s == nil {
		s = &Share{Name: fmt.Sprint(key)}
		to[key] = s
	}
	s.Packets++
	s.Time += took
}

// addSlowest adds row to the sorted list of slowest rows if it is slow enough. Rows
// with the same duration stay in the order of the file.
func (a *analysis) addSlowest(row Row) {
	at := len(a.slowest)
	for at > 0 && a.slowest[at-1].Duration < row.Duration {
		at--
	}
	if at >= slowestKept {
		return
	}
	a.slowest = slices.Insert(a.slowest, at, row)
	a.slowest = a.slowest[:min(len(a.slowest), slowestKept)]
}

func byTime(shares map[string]*Share) []Share {
	list := make([]Share, 0, len(shares))
	for _, s := range shares {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(x, y Share) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Name, y.Name))
	})
	return list
}

func (a *analysis) byLayer() []Share {
	var list []Share
	for _, layer := range slices.Sorted(maps.Keys(a.layers)) {
		list = append(list, *a.layers[layer])
	}
	return list
}
