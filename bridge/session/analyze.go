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

// ErrNoSession means that a directory has no CSV in it.
var ErrNoSession = errors.New("no session in the directory")

const (
	slowestKept  = 5
	failuresKept = 100
)

// Report is the analysis of a session's files. All its times and all its
// figures per device, worker and layer are of packets that succeeded; Summary
// and Failures have the failed ones. Its size doesn't depend on the number of
// packets.
type Report struct {
	Path string // of the CSV

	// Summary is the sum of the CSV's rows, as [Recover] makes it: tokens are
	// 0, and times are sums of the CSV's microseconds.
	Summary Summary
	// Written is the summary that the session itself wrote. It is nil if the
	// session is still running, if its program ended without Close, or if the
	// file can't be read; then WrittenErr says why.
	Written    *Summary
	WrittenErr error

	Devices   []Share    // the most time first
	Workers   []Share    // the most time first
	Layers    []Share    // layers from 0 on, in their order
	Durations []Bucket   // without the empty ones before the first and after the last packet
	Timeline  []Interval // of equal length, at most 20
	Slowest   []Row      // the five packets that took longest, the longest first
	Failures  []Row      // the first 100; Summary.FailedPackets is their number

	// AllWorkers makes WriteTo list every worker instead of the first 20.
	AllWorkers bool

	// CutLine is the line of the CSV on which an incomplete row begins, which
	// was left out; 0 if there is none.
	CutLine int
}

// Share is the part of a session that one device, worker or layer has.
type Share struct {
	Name    string // the layer's index, for a layer
	Packets int64
	Time    time.Duration
}

// Analyze reads a session, of this package or of the Python program that it is
// compatible with. The path is that of a CSV, or a directory, which stands for
// its newest CSV; an empty path means [DefaultDir]. The session may still be
// running.
//
// The errors are those of reading, such as [fs.ErrNotExist], ErrNoSession and
// ErrFormat. A session without packets is not an error.
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
		Path:      csvPath,
		Summary:   replayed.summary(files),
		Devices:   byTime(a.devices),
		Workers:   byTime(a.workers),
		Layers:    a.byLayer(),
		Durations: a.durations.list(),
		Timeline:  a.timeline.list(),
		Slowest:   a.slowest,
		Failures:  a.failures,
		CutLine:   replayed.cut,
	}
	if r.Written, err = readSummary(files.json); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.WrittenErr = err
	}
	return r, nil
}

// locate returns the CSV that a path stands for.
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
			continue // removed meanwhile, or not a file
		}
		// Entries are sorted, so of two of the same age the later name wins.
		if newest == nil || !info.ModTime().Before(newest.ModTime()) {
			newest = info
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%w %s", ErrNoSession, path)
	}
	return filepath.Join(path, newest.Name()), nil
}

// analysis gathers what a report has in addition to the summary.
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
	if row.Layer >= 0 { // the embedding is before the first layer
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

// addSlowest keeps the slowest rows in order. Of two equal ones, the first
// stays first.
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
