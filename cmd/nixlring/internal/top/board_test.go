// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
)

var begin = time.Unix(1_800_000_000, 0)

// feed adds samples of one agent to a board, a second apart, and returns its row.
func feed(b *Board, readings ...Reading) *Row {
	for _, r := range readings {
		at := b.At().Add(time.Second)
		if b.At().IsZero() {
			at = begin
		}
		if r.Path == "" {
			r.Path, r.Name = "/dir/a", "a"
		}
		r.ID = "/dir/a"
		if r.Capacity == 0 {
			r.Capacity = 101
		}
		b.Add(Sample{At: at, Agents: []Reading{r}})
	}
	return b.Row("/dir/a")
}

func TestRatesCoverTheWindow(t *testing.T) {
	b := NewBoard(4*time.Second, 3)
	total := func(n uint64) Reading {
		return Reading{Memory: 7, Totals: Totals{
			Out: 1000 * n, In: 100 * n, Transfers: 10 * n, Errors: n, Events: 40 * n,
			Duration: countTimes(), Post: countTimes(),
		}}
	}
	r := feed(b, total(50)) // the first reading doesn't count
	if r.Out != 0 || r.Transfers != 0 || !math.IsNaN(r.P50) || !r.NoEvents {
		t.Errorf("after the first reading: %+v", r)
	}
	r = feed(b, total(51))
	if r.Out != 1000 || r.In != 100 || r.Transfers != 10 || r.Errors != 1 || r.NoEvents || r.Age != 0 {
		t.Errorf("after one second: %+v", r)
	}
	r = feed(b, total(51), total(51), total(55))
	if r.Out != 5000.0/4 || b.Sum().Transfers != 50.0/4 || b.Sum().Memory != 7 {
		t.Errorf("over the window: %v B/s out, %+v", r.Out, b.Sum())
	}
	unknown := total(55)
	unknown.MemoryUnknown = true
	if feed(b, unknown); b.Sum().Memory != 0 {
		t.Errorf("the sum includes unknown memory: %d bytes", b.Sum().Memory)
	}
	r = feed(b, total(55))
	if r.Out != 1000 || r.Age != 2*time.Second || r.Since.Out != 5000 {
		t.Errorf("at the end: %v B/s out, age %v, %v since", r.Out, r.Age, r.Since.Out)
	}
	if diff := cmp.Diff([]float64{4000, 0, 0}, b.History("/dir/a").Out); diff != "" {
		t.Error(diff)
	}
	b.Add(Sample{At: b.At().Add(time.Second)})
	if b.Row("/dir/a") != nil || b.Sum().Agents != 0 || len(b.History("/dir/a").Out) != 0 {
		t.Error("an agent that isn't in the sample wasn't removed")
	}
}

func TestBoardKeepsFewPointsOfManySamples(t *testing.T) {
	b := NewBoard(time.Second, 10)
	for i := range 5000 {
		b.Add(Sample{At: begin.Add(time.Duration(i) * time.Millisecond), Agents: []Reading{{
			ID: "/dir/a", Path: "/dir/a", Totals: Totals{Out: uint64(i)},
		}}})
		if i > 0 && math.Abs(b.Rows()[0].Out-1000) > 1e-6 {
			t.Fatalf("after %d ms: %v B/s", i, b.Rows()[0].Out)
		}
	}
	track := b.tracks["/dir/a"]
	if n := len(track.points); n > maxPoints+3 {
		t.Errorf("%d points", n)
	}
	if got := b.At().Sub(track.points[0].at); got < time.Second || got > 1100*time.Millisecond {
		t.Errorf("the points cover %v", got)
	}
}

func TestQuantilesCoverTheWindow(t *testing.T) {
	b := NewBoard(time.Second, 3)
	slow, fast := countTimes(5), countTimes(5)
	for range 100 {
		fast[10]++
	}
	r := feed(b, Reading{Totals: Totals{Duration: slow, Post: slow}}, Reading{Totals: Totals{Duration: fast, Post: slow, Transfers: 100}})
	if r.P99 >= bounds[10] || r.P50 <= bounds[9] || !math.IsNaN(r.PostP50) {
		t.Errorf("p50 %v, p99 %v, post %v", r.P50, r.P99, r.PostP50)
	}
	if h := b.History("/dir/a"); h.P99[0] != r.P99 || b.Sum().P99 != r.P99 {
		t.Errorf("history %v, sum %v", h.P99, b.Sum().P99)
	}
}

func TestThroughputQuantilesCoverTheWindow(t *testing.T) {
	slow, fast := make([]uint64, len(throughputBounds)+1), make([]uint64, len(throughputBounds)+1)
	slow[10], fast[10], fast[60] = 100, 100, 11
	fast[70] = 10
	b := NewBoard(time.Second, 3)
	r := feed(b, Reading{Totals: Totals{Throughput: slow}}, Reading{Totals: Totals{Throughput: fast, Transfers: 21}})
	if r.ThroughputP50 <= throughputBounds[59] || r.ThroughputP50 > throughputBounds[60] || r.ThroughputP10 >= r.ThroughputP50 {
		t.Errorf("p50 %v, p10 %v", r.ThroughputP50, r.ThroughputP10)
	}
	if h := b.History("/dir/a").Throughput; len(h) != 1 || h[0] != r.ThroughputP50 {
		t.Errorf("history %v", h)
	}
	if r := feed(NewBoard(time.Second, 3), Reading{}, Reading{}); !math.IsNaN(r.ThroughputP50) || !math.IsNaN(r.ThroughputP10) {
		t.Errorf("without transfers: p50 %v, p10 %v", r.ThroughputP50, r.ThroughputP10)
	}
}

// busy returns an agent that wrote events, and whose ring had a peak.
func busy(events uint64, peak int, more ...func(*Reading)) Reading {
	r := Reading{Peak: peak, Totals: Totals{Events: events}}
	for _, f := range more {
		f(&r)
	}
	return r
}

func locked(r *Reading) { r.Lock = Lock{PID: 12, Name: "otelcol"} }

func TestRowHasTheReaderAndTheProblemsOfAnAgent(t *testing.T) {
	type problems = []Problem
	for _, tt := range []struct {
		name     string
		readings []Reading
		reader   Reader
		who      string
		want     problems
	}{
		{"idle", []Reading{busy(0, 0), busy(0, 0)}, Unknown, "", nil},
		{"unread, filling up", []Reading{busy(0, 0), busy(10, 10), busy(20, 20)}, Nobody, "nobody", problems{{Warn, "unread, full in 8 s"}}},
		{"unread, idle", []Reading{busy(20, 20), busy(20, 20)}, Nobody, "nobody", problems{{Info, "unread"}}},
		{"unread, full", []Reading{busy(90, 90), busy(100, 100)}, Nobody, "nobody", problems{{Bad, "full, unread"}}},
		{"unread, agent exited", []Reading{busy(20, 20), busy(20, 20, func(r *Reading) { r.Alive = procs.No })}, Nobody, "nobody", problems{{Info, "agent exited"}}},
		{"locked", []Reading{busy(0, 0, locked), busy(50, 10, locked), busy(99, 9, locked)}, Locked, "otelcol", nil},
		{"stalled", []Reading{busy(0, 0, locked), busy(10, 10, locked)}, Stalled, "otelcol", problems{{Warn, "otelcol stalls, full in 9 s"}}},
		{"stalled, full", []Reading{busy(100, 100, locked), busy(100, 100, locked)}, Stalled, "otelcol", problems{{Bad, "full, otelcol stalls"}}},
		{"locked by an unnamed process", []Reading{busy(0, 0), busy(9, 0, func(r *Reading) { r.Lock.PID = 3 })}, Locked, "pid 3", nil},
		{"foreign reader", []Reading{busy(0, 0), busy(50, 10)}, Foreign, "foreign", problems{{Warn, "foreign reader"}}},
		{"restart without a reader", []Reading{busy(90, 90), busy(95, 5, func(r *Reading) { r.Totals.Restarts = 1 })}, Nobody, "nobody", problems{{Warn, "unread, full in 19 s"}, {Info, "restarted"}}},
		{
			"earlier losses", []Reading{
				busy(0, 0, locked),
				busy(9, 0, locked, func(r *Reading) { r.Totals.Saturations, r.Totals.Torn, r.Totals.Dropped = 1234, 2, 3 }),
				busy(19, 0, locked, func(r *Reading) { r.Totals.Saturations, r.Totals.Torn, r.Totals.Dropped = 1234, 2, 4 }),
			}, Locked, "otelcol", problems{{Bad, "4 dropped"}, {Warn, "full 1,234×"}, {Warn, "2 torn"}},
		},
		{"few errors", []Reading{busy(0, 0), busy(0, 0, func(r *Reading) { r.Totals.Errors, r.Totals.Transfers = 1, 100 })}, Unknown, "", nil},
		{"many errors", []Reading{busy(0, 0), busy(0, 0, func(r *Reading) { r.Totals.Errors, r.Totals.Transfers = 1, 9 })}, Unknown, "", problems{{Bad, "10% fail"}}},
		{"missed events", []Reading{busy(0, 0), busy(0, 0, func(r *Reading) { r.Totals.Missed = 1 })}, Unknown, "", problems{{Warn, "missed events"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := feed(NewBoard(time.Second, 3), tt.readings...)
			if r.Reader != tt.reader || r.ReaderName() != tt.who {
				t.Errorf("reader %v, %q", r.Reader, r.ReaderName())
			}
			if diff := cmp.Diff(tt.want, r.Problems); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file system that hangs, for example, says nothing about the agents.
func TestHistorySurvivesFailedSamples(t *testing.T) {
	b := NewBoard(5*time.Second, 10)
	r := feed(b, busy(0, 0), busy(10, 1), busy(20, 1))
	failed := b.At().Add(time.Second)
	for i := range 3 {
		b.Add(Sample{At: failed.Add(time.Duration(i) * time.Second), Failed: errors.New("it hangs")})
	}
	if got := b.Row(r.ID); got == nil || len(b.History(r.ID).Out) != 2 || b.Sum().Agents != 1 {
		t.Errorf("%+v, %+v", got, b.History(r.ID))
	}
	if want := "no data since " + failed.Format(time.TimeOnly) + ": it hangs"; b.Warning() != want || b.Err() != nil {
		t.Errorf("%q, %v; want %q", b.Warning(), b.Err(), want)
	}
	if b.Add(Sample{At: failed.Add(time.Minute)}); b.Warning() != "" || b.Sum().Agents != 0 {
		t.Errorf("after a sample: %q, %d agents", b.Warning(), b.Sum().Agents)
	}
}

// The path of a ring in a container changes when the container restarts.
func TestHistoryFollowsTheAgentNotThePath(t *testing.T) {
	b := NewBoard(5*time.Second, 10)
	for i, path := range []string{"/proc/7/root/a", "/proc/7/root/a", "/proc/9/root/a"} {
		b.Add(Sample{At: begin.Add(time.Duration(i) * time.Second), Agents: []Reading{{ID: "pod a", Path: path, Name: "a"}}})
	}
	if h := b.History("pod a"); len(h.Out) != 2 || b.Row("pod a").Path != "/proc/9/root/a" {
		t.Errorf("%+v", h)
	}
}
