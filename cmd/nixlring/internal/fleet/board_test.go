// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/semconv"
)

var begin = time.Unix(1_800_000_000, 0)

// state returns an agent after some transfers of 1 MiB, which take some milliseconds each.
func state(id string, transfers uint64, milliseconds float64, change ...func(*diagnose.Agent)) diagnose.Agent {
	a := diagnose.Agent{
		Identity: diagnose.Identity{ID: id, Name: id}, Path: "/dir/" + id, Up: diagnose.Yes, Events: 4 * transfers,
		Moved: [2]diagnose.Moved{{Bytes: transfers << 20, Transfers: transfers, Seconds: float64(transfers) * milliseconds / 1000}},
		Times: diagnose.Histogram{Bounds: timeBounds, Counts: make([]uint64, len(timeBounds)+1)},
		Ring:  &diagnose.Ring{Capacity: 101, Consumer: &diagnose.Consumer{PID: 12, Name: "otelcol"}},
	}
	a.Times.Counts[slices.Index(timeBounds, 0.002)] = transfers
	a.Sizes = diagnose.Histogram{Bounds: []float64{1 << 20}, Counts: []uint64{transfers, 0}}
	for _, f := range change {
		f(&a)
	}
	return a
}

// show adds frames a second apart.
func show(b *Board, frames ...[]diagnose.Agent) {
	for _, agents := range frames {
		at := begin
		if !b.At().IsZero() {
			at = b.At().Add(time.Second)
		}
		b.Add(&diagnose.Frame{Time: at, Agents: agents})
	}
}

// said returns the kinds of findings, and the IDs of their agents.
func said(list []diagnose.Finding) (texts []string) {
	for _, f := range list {
		var ids []string
		for _, a := range f.Agents {
			ids = append(ids, a.ID)
		}
		texts = append(texts, fmt.Sprint(f.Kind, " ", ids))
	}
	return texts
}

func TestRatesCoverTheWindow(t *testing.T) {
	b := NewBoard(4 * time.Second)
	memory := int64(7)
	a := func(n uint64) []diagnose.Agent {
		return []diagnose.Agent{state("a", n, 2, func(a *diagnose.Agent) {
			a.Errors, a.Memory = map[string]uint64{"backend": n / 10, diagnose.Canceled: n}, &memory
		})}
	}
	if show(b, a(500)); b.Row("a").Out != 0 || !math.IsNaN(b.Row("a").P50) || !b.Row("a").NoEvents { // earlier transfers don't count
		t.Errorf("after the first frame: %+v", b.Row("a"))
	}
	rates := func(want Rates, age time.Duration) {
		t.Helper()
		r := b.Row("a")
		ignore := cmpopts.IgnoreFields(Rates{}, "Window")
		if diff := cmp.Diff(want, r.Rates, ignore, cmpopts.EquateApprox(1e-6, 0)); diff != "" || r.Age != age {
			t.Errorf("%v since the last event: %s", r.Age, diff)
		}
	}
	show(b, a(510))
	rates(Rates{Out: 10 << 20, Completed: 10, Failures: 1, P50: 0.00175, P99: 0.001995, Speed: 1 << 20 / 0.002}, 0)
	show(b, a(510), a(510), a(550), a(550))
	rates(Rates{Out: 10 << 20, Completed: 10, Failures: 1, P50: 0.00175, P99: 0.001995, Speed: 1 << 20 / 0.002}, time.Second)
	sum := &Sum{Agents: 1, Out: 10 << 20, Completed: 10, Failures: 1, Memory: 7}
	if diff := cmp.Diff(sum, b.Sum(), cmpopts.IgnoreFields(Sum{}, "Times", "Sizes")); diff != "" || b.Sum().Times.Quantile(0.5) != b.Row("a").P50 {
		t.Error(diff)
	}
	if i := slices.Index(semconv.TransferSize.Bounds, 1<<20); b.Sum().Sizes.Counts[i] != 40 {
		t.Errorf("sizes: %v", b.Sum().Sizes)
	}
	if show(b, nil); b.Row("a") != nil || b.Sum().Agents != 0 {
		t.Error("an agent that isn't in the frame wasn't removed")
	}
}

// Frames may be taken far more often than the window is long.
func TestBoardKeepsFewOfManyFrames(t *testing.T) {
	b := NewBoard(time.Second)
	for i := range 5000 {
		b.Add(&diagnose.Frame{Time: begin.Add(time.Duration(i) * time.Millisecond), Agents: []diagnose.Agent{state("a", uint64(i), 0.1)}})
		if got := b.Row("a").Completed; i > 0 && math.Abs(got-1000) > 1e-6 {
			t.Fatalf("after %d ms: %v transfers per second", i, got)
		}
	}
	if n := len(b.frames); n > 5*mostFrames+10 {
		t.Errorf("%d frames", n)
	}
}

func TestRowHasTheProblemsOfAnAgent(t *testing.T) {
	peak := func(n int) func(*diagnose.Agent) { return func(a *diagnose.Agent) { a.Ring.Peak = n } }
	nobody := func(a *diagnose.Agent) { a.Ring.Consumer = nil }
	store := func(a *diagnose.Agent) { a.Ring, a.Store = nil, true }
	for name, tt := range map[string]struct {
		frames [][]diagnose.Agent
		who    string
		want   []Problem
	}{
		"idle":                 {[][]diagnose.Agent{{state("a", 0, 1, nobody)}, {state("a", 0, 1, nobody)}}, "", nil},
		"a store":              {[][]diagnose.Agent{{state("a", 0, 1, store)}, {state("a", 25, 1, store)}}, "", nil},
		"a store, then a ring": {[][]diagnose.Agent{{state("a", 0, 1, store)}, {state("a", 0, 1)}}, "otelcol", nil},
		"drained":              {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 25, 1)}}, "otelcol", nil},
		"not drained":          {[][]diagnose.Agent{{state("a", 0, 1, nobody)}, {state("a", 5, 1, nobody, peak(20))}}, "nobody", []Problem{{diagnose.Warning, "unread, full in 4 s"}}},
		"hanging":              {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 5, 1, peak(20))}}, "otelcol", []Problem{{diagnose.Warning, "unread, full in 4 s"}}},
		"foreign":              {[][]diagnose.Agent{{state("a", 0, 1, nobody)}, {state("a", 25, 1, nobody)}}, "foreign", []Problem{{diagnose.Warning, "events taken"}}},
		"exited":               {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 0, 1, func(a *diagnose.Agent) { a.Up = diagnose.No })}}, "otelcol", []Problem{{diagnose.Info, "agent exited"}}},
		"restarted":            {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 0, 1, func(a *diagnose.Agent) { a.Ring.Restarts = 1 })}}, "otelcol", []Problem{{diagnose.Info, "restarted"}}},
		"missed events":        {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 0, 1, func(a *diagnose.Agent) { a.Ring.Misses = 1 })}}, "otelcol", []Problem{{diagnose.Info, "missed events"}}},
		"events dropped":       {[][]diagnose.Agent{{state("a", 0, 1)}, {state("a", 25, 1, func(a *diagnose.Agent) { a.Dropped = 3 })}}, "otelcol", []Problem{{diagnose.Warning, "events lost: 3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBoard(time.Second)
			show(b, tt.frames...)
			r := b.Row("a")
			if diff := cmp.Diff(tt.want, r.Problems); diff != "" || r.Consumer() != tt.who || (r.Place > 0) != (r.Worst() == diagnose.Warning) {
				t.Errorf("consumer %q, place %d: %s", r.Consumer(), r.Place, diff)
			}
		})
	}
}

// A file system that hangs, for example, says nothing about the agents.
func TestRowsSurviveFailedFrames(t *testing.T) {
	b := NewBoard(5 * time.Second)
	b.Fail(errors.New("no\x1bdirectory"))
	if diff := cmp.Diff([]string{`"no\x1bdirectory"`}, b.Notes()); diff != "" {
		t.Errorf("before the first frame: %s", diff)
	}
	show(b, []diagnose.Agent{state("a", 0, 1)}, []diagnose.Agent{state("a", 1, 1)})
	b.Fail(errors.New("it hangs"))
	if b.Row("a") == nil || b.Row("a").Completed != 1 {
		t.Errorf("%+v", b.Rows())
	}
	if diff := cmp.Diff([]string{"no data since " + b.At().Format(time.TimeOnly) + ": it hangs"}, b.Notes()); diff != "" {
		t.Error(diff)
	}
	if show(b, nil); len(b.Notes()) != 0 {
		t.Error(b.Notes())
	}
}

// The path of a ring in a container changes when the container restarts. Two agents in two directories may have
// the same name.
func TestAgentsAreToldApartByTheirID(t *testing.T) {
	b := NewBoard(5 * time.Second)
	for second := range uint64(3) {
		var list []diagnose.Agent
		for i := range 8 {
			list = append(list, state(fmt.Sprintf("/%d/agent-%d", i/4, i%4), 100*second, 1, func(a *diagnose.Agent) {
				a.Name, a.Service, a.Path = a.ID[3:], "decode", fmt.Sprintf("/proc/%d/root", second)
				if i == 1 {
					a.Moved[0].Seconds *= 10
				}
			}))
		}
		show(b, list)
	}
	if diff := cmp.Diff([]string{"straggler [/0/agent-1]"}, said(b.Findings())); diff != "" || len(b.Row("/1/agent-1").Findings) != 0 {
		t.Error(diff, b.Row("/1/agent-1").Findings)
	}
	if n := b.Sum().WithProblems; n != 1 {
		t.Errorf("%d agents have problems", n)
	}
}

// A board that watches for long keeps few frames, and still knows when a finding began and how fast agents were.
func TestBoardRemembersHalfAnHour(t *testing.T) {
	b := NewBoard(10 * time.Second)
	const slowFrom, end = 20 * 60, 30 * 60 // seconds
	totals := [4]float64{}
	for second := range end {
		var agents []diagnose.Agent
		for i := range totals {
			if totals[i]++; second >= slowFrom {
				totals[i] += 1.5
			}
			agents = append(agents, state(string(rune('a'+i)), uint64(100*(second+1)), 1, func(a *diagnose.Agent) { a.Moved[0].Seconds = totals[i] / 10 }))
		}
		b.Add(&diagnose.Frame{Time: begin.Add(time.Duration(second) * 1001 * time.Millisecond), Agents: agents}) // never exactly on time
		if list := b.Findings(); (second < slowFrom || second > slowFrom+20) && (len(list) > 0) != (second >= slowFrom) {
			t.Fatalf("after %d s: %+v", second, list)
		}
	}
	if diff := cmp.Diff([]string{"job_slower [a b c d]"}, said(b.Findings())); diff != "" {
		t.Fatal(diff)
	}
	if since := b.Findings()[0].Since.Sub(begin.Add(slowFrom * time.Second)); since < 0 || since > 25*time.Second {
		t.Errorf("since %v after the beginning", since)
	}
	if n := len(b.frames); n < 178 || n > 205+40 {
		t.Errorf("%d frames are kept", n)
	}
}

func TestSlowestTransfersAreKeptForAMinute(t *testing.T) {
	b := NewBoard(time.Second)
	for second := range 100 {
		show(b, []diagnose.Agent{state("a", uint64(second), 1, func(a *diagnose.Agent) {
			a.Transfers = []diagnose.Transfer{{Time: begin.Add(time.Duration(second) * time.Second), Took: float64((second * 41) % 100)}}
		})})
	}
	var got []float64
	for _, x := range b.Slowest("a") {
		got = append(got, x.Took)
	}
	var want []float64
	for second := 40; second < 100; second++ {
		want = append(want, float64((second*41)%100))
	}
	slices.Sort(want)
	slices.Reverse(want)
	if diff := cmp.Diff(want[:mostSlowest], got); diff != "" {
		t.Error(diff)
	}
}

func TestBoundsIncludeThoseOfTheMetrics(t *testing.T) {
	for _, b := range semconv.TransferDuration.Bounds {
		if b < timeBounds[len(timeBounds)-1] && !slices.ContainsFunc(timeBounds, func(v float64) bool { return math.Abs(v/b-1) < 1e-9 }) {
			t.Errorf("%v s isn't a bound", b)
		}
	}
	if got := Duration(timeBounds[len(timeBounds)-1]); got != ">100 s" {
		t.Errorf("the last bound is %q", got)
	}
	if diff := cmp.Diff([]float64{1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 6e-6, 8e-6, 10e-6, 15e-6}, timeBounds[:9]); diff != "" {
		t.Error(diff)
	}
}

func TestQuantilesOfASmoothDistributionAreWithinFivePercent(t *testing.T) {
	h := diagnose.Histogram{Bounds: timeBounds, Counts: make([]uint64, len(timeBounds)+1)}
	rnd := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = math.Exp(rnd.NormFloat64()) * 1e-3
		at, _ := slices.BinarySearch(timeBounds, values[i])
		h.Counts[at]++
	}
	slices.Sort(values)
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
		want := values[int(q*float64(len(values)))]
		if got := h.Quantile(q); math.Abs(got/want-1) > 0.05 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

// A source may deliver frames further apart than the window.
func TestTwoFramesThatAreLongerApartThanTheWindowAreJudged(t *testing.T) {
	b := NewBoard(time.Second)
	for i := range uint64(2) {
		var list []diagnose.Agent
		for n := range 6 {
			list = append(list, state(fmt.Sprint("agent-", n), 1000*i, []float64{1, 10}[n/5]))
		}
		b.Add(&diagnose.Frame{Time: begin.Add(time.Duration(i) * 10 * time.Second), Agents: list})
	}
	if diff := cmp.Diff([]string{"straggler [agent-5]"}, said(b.Findings())); diff != "" {
		t.Error(diff)
	}
}
