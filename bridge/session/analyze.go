package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// Report is what a session's files say. Its memory doesn't depend on the
// number of packets.
type Report struct {
	Path string // of the CSV

	// Summary is what the CSV's rows amount to. It is made as by [Recover],
	// so tokens are 0, and times are sums of the CSV's microseconds.
	Summary Summary
	// Written is the summary that the session itself wrote, nil if there is
	// none: the session runs on, or was cut. WrittenErr is why there is none
	// although there is a file for it.
	Written    *Summary
	WrittenErr error

	Workers  []WorkerTime // successes, the most time first
	Layers   []LayerTime  // successes at layers from 0 on, in their order
	Slowest  []Row        // the five successes that took longest, the longest first
	Failures []Row        // the first 100; Summary.FailedPackets is how many there are

	// AllWorkers makes WriteTo list every worker, however many there are.
	AllWorkers bool

	// CutLine is the line of the CSV that is only a part of a row, and was
	// left out; 0 if there is none.
	CutLine int
}

// WorkerTime is what the successful packets of one worker amount to.
type WorkerTime struct {
	Worker  string
	Packets int64
	Time    time.Duration
}

// LayerTime is what the successful packets of one layer amount to.
type LayerTime struct {
	Layer   int
	Packets int64
	Time    time.Duration
}

// Empty reports whether the session has no packets.
func (r *Report) Empty() bool { return r.Summary.TotalPackets == 0 }

// Analyze reads a session, one of this package's or of the Python program.
// The path is that of its CSV, or a directory, whose newest CSV is taken; an
// empty path is [DefaultDir]. The session may still be running.
//
// The errors are those of reading, fs.ErrNotExist for a file or directory
// that isn't there among them, ErrNoSession and ErrFormat. A session without
// packets is no error; see [Report.Empty].
func Analyze(path string, opts ...ReadOption) (*Report, error) {
	csvPath, err := locate(path)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	a := newAnalysis()
	replayed, err := replayFile(csvPath, newReadConfig(opts), a.add)
	if err != nil {
		return nil, fmt.Errorf("analyze session: %w", err)
	}
	files := paths{csv: csvPath, json: summaryPath(csvPath)}
	r := &Report{
		Path:     csvPath,
		Summary:  replayed.summary(files),
		Workers:  a.byTime(),
		Layers:   a.byLayer(),
		Slowest:  a.slowest,
		Failures: a.failures,
		CutLine:  replayed.cut,
	}
	if r.Written, err = readSummary(files.json); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.WrittenErr = err
	}
	return r, nil
}

// locate is the CSV that a path stands for.
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
			continue // it went away, or is something else
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

// analysis gathers what a report says beyond the summary.
type analysis struct {
	workers  map[string]*WorkerTime
	layers   map[int]*LayerTime
	slowest  []Row
	failures []Row
}

func newAnalysis() *analysis {
	return &analysis{workers: make(map[string]*WorkerTime), layers: make(map[int]*LayerTime)}
}

func (a *analysis) add(row Row) {
	if !row.Success {
		if len(a.failures) < failuresKept {
			a.failures = append(a.failures, row)
		}
		return
	}
	w := a.workers[row.Worker]
	if w == nil {
		w = &WorkerTime{Worker: row.Worker}
		a.workers[row.Worker] = w
	}
	w.Packets++
	w.Time += row.Duration
	if row.Layer >= 0 { // the embedding is at no layer
		l := a.layers[row.Layer]
		if l == nil {
			l = &LayerTime{Layer: row.Layer}
			a.layers[row.Layer] = l
		}
		l.Packets++
		l.Time += row.Duration
	}
	a.addSlowest(row)
}

// addSlowest keeps the slowest rows in order; of two alike the first is first.
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

func (a *analysis) byTime() []WorkerTime {
	workers := make([]WorkerTime, 0, len(a.workers))
	for _, w := range a.workers {
		workers = append(workers, *w)
	}
	slices.SortFunc(workers, func(x, y WorkerTime) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Worker, y.Worker))
	})
	return workers
}

func (a *analysis) byLayer() []LayerTime {
	layers := make([]LayerTime, 0, len(a.layers))
	for _, l := range a.layers {
		layers = append(layers, *l)
	}
	slices.SortFunc(layers, func(x, y LayerTime) int { return cmp.Compare(x.Layer, y.Layer) })
	return layers
}
