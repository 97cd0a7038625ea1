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
	a := newAnalysis()
	replayed, err := replayFile(path, func(*os.File) error { return nil }, a.add)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	r := &Report{
		Path:           replayed.files.csv,
		Summary:        replayed.summary(),
		Devices:        byTime(a.devices),
		Workers:        byTime(a.workers),
		Layers:         a.byLayer(),
		Durations:      a.durations.list(),
		Timeline:       a.timeline.list(),
		Slowest:        a.slowest,
		Failures:       a.failures,
		IncompleteLine: replayed.incomplete,
	}
	if r.Written, err = readSummary(replayed.files.json); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// Bucket counts packets by duration. The duration is at most UpperBound and greater
// than the previous bucket's UpperBound.
type Bucket struct {
	UpperBound time.Duration
	Packets    int64
}

// durations counts packets by duration. Its bounds are 1, 2 and 5 µs, times powers
// of ten.
type durations struct {
	counts []int64
}

func (d *durations) add(took time.Duration) {
	i := 0
	for durationBound(i) < took {
		i++
	}
	for len(d.counts) <= i {
		d.counts = append(d.counts, 0)
	}
	d.counts[i]++
}

// durationBound returns the upper bound of bucket i. It can't overflow, because the
// duration of a [Row] is at most 1e12 ms.
func durationBound(i int) time.Duration {
	bound := time.Microsecond * time.Duration([...]int{1, 2, 5}[i%3])
	for range i / 3 {
		bound *= 10
	}
	return bound
}

func (d *durations) list() []Bucket {
	var list []Bucket
	for i, n := range d.counts {
		if n > 0 || len(list) > 0 {
			list = append(list, Bucket{durationBound(i), n})
		}
	}
	return list
}

// Interval is a part of the session's time. It counts the packets that ended in it.
type Interval struct {
	Start   time.Duration // since the start of the first packet
	Packets int64
	Time    time.Duration // total duration of the packets
}

const (
	timelineLength = 20
	timelineFinest = 10 * time.Microsecond
)

// timeline divides a session, whose length isn't known in advance, into intervals.
// If a packet ends after the last interval, pairs of intervals are merged.
type timeline struct {
	start     time.Time
	width     time.Duration // length of an interval; 0 before the first packet
	intervals [timelineLength]Interval
	used      int
}

func (t *timeline) add(row Row) {
	if t.width == 0 {
		t.start, t.width = row.Time.Add(-row.Duration), timelineFinest
	}
	at := max(row.Time.Sub(t.start), 0)
	for at/t.width >= timelineLength {
		t.widen()
	}
	i := int(at / t.width)
	t.intervals[i].Packets++
	t.intervals[i].Time += row.Duration
	t.used = max(t.used, i+1)
}

func (t *timeline) widen() {
	old := t.intervals
	t.intervals = [timelineLength]Interval{}
	for i, interval := range old {
		t.intervals[i/2].Packets += interval.Packets
		t.intervals[i/2].Time += interval.Time
	}
	t.width *= 2
	t.used = (t.used + 1) / 2
}

func (t *timeline) list() []Interval {
	list := make([]Interval, t.used)
	for i := range list {
		list[i] = t.intervals[i]
		list[i].Start = time.Duration(i) * t.width
	}
	return list
}
