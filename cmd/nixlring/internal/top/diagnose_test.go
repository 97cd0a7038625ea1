// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// boardOf returns a board with two samples of agents. All transfers of an agent have the
// throughput of its bucket.
func boardOf(paths []string, buckets []int, transfers uint64) *Board {
	return fill(NewBoard(5*time.Second, 3), paths, buckets, transfers)
}

func fill(b *Board, paths []string, buckets []int, transfers uint64) *Board {
	for second := range 2 {
		s := Sample{At: begin.Add(time.Duration(second) * time.Second)}
		for i, p := range paths {
			counts := make([]uint64, len(throughputBounds)+1)
			counts[buckets[i]] = uint64(second) * transfers
			n := uint64(second) * transfers
			s.Agents = append(s.Agents, Reading{ID: p, Path: p, Name: p, Totals: Totals{
				Throughput: counts, Transfers: n, Out: n << 30, Took: uint64(float64(n<<30) / throughputBounds[buckets[i]] * 1e6),
			}})
		}
		b.Add(s)
	}
	return b
}

func stragglers(b *Board) string {
	var names []string
	for _, r := range b.Rows() {
		if len(r.Findings) == 1 && r.Findings[0].Kind == diagnose.Straggler {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, " ")
}

// A decade has ten buckets; three buckets are about a factor of two.
func TestStragglerIsFarBelowItsPeers(t *testing.T) {
	same := []string{"/d/a", "/d/b", "/d/c", "/d/d", "/d/e"}
	for _, tt := range []struct {
		name      string
		paths     []string
		buckets   []int
		transfers uint64
		want      string
	}{
		{"one of five is slow", same, []int{60, 60, 50, 60, 60}, 100, "/d/c"},
		{"two of five are slow", same, []int{60, 54, 54, 60, 60}, 100, ""}, // perhaps another generation of hardware
		{"two of five are far slower", same, []int{60, 50, 50, 60, 60}, 100, "/d/b /d/c"},
		{"three of five are slow", same, []int{60, 50, 50, 50, 60}, 100, ""},
		{"nearly as fast", same, []int{60, 60, 59, 60, 60}, 100, ""},
		{"throughput varies widely", same, []int{40, 50, 60, 70, 80}, 100, ""},
		{"one is fast", same, []int{60, 60, 80, 60, 60}, 100, ""},
		{"too few transfers", same, []int{60, 60, 50, 60, 60}, 19, ""},
		{"one of four is slow", same[:4], []int{60, 60, 50, 60}, 100, "/d/c"},
		{"one of three is slow", same[:3], []int{60, 54, 60}, 100, ""},
		{"one of three is far slower", same[:3], []int{60, 50, 60}, 100, "/d/b"},
		{"slow agent in another directory", []string{"/d/a", "/d/b", "/e/c", "/d/d", "/d/e"}, []int{60, 60, 50, 60, 60}, 100, ""},
	} {
		if got := stragglers(boardOf(tt.paths, tt.buckets, tt.transfers)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestStragglerHasAProblem(t *testing.T) {
	b := boardOf([]string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 100)
	r := b.Row("/d/c")
	if len(r.Problems) != 1 || r.Problems[0] != (Problem{Warn, "straggler: 10% of peers"}) || b.Sum().WithProblems != 1 {
		t.Errorf("%+v, %d with problems", r.Problems, b.Sum().WithProblems)
	}
	if ratio := r.Speed / b.Row("/d/a").Speed; math.Abs(ratio-0.1) > 1e-3 {
		t.Errorf("ratio of the speeds is %v", ratio)
	}
}

// With --once, top takes two samples, slightly more than a window apart.
func TestSamplesFartherApartThanTheWindowAreJudged(t *testing.T) {
	b := fill(NewBoard(time.Second-time.Millisecond, 3), []string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 100)
	if got := stragglers(b); got != "/d/c" {
		t.Errorf("%q is a straggler", got)
	}
}

func TestAgentWithoutTransfersHasNoSpeed(t *testing.T) {
	b := boardOf([]string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 0)
	for _, r := range b.Rows() {
		if !math.IsNaN(r.Speed) || len(r.Findings) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A board that watches for long keeps few samples, and still knows when a finding began and how fast
// agents were.
func TestBoardRemembersHalfAnHour(t *testing.T) {
	b := NewBoard(10*time.Second, 1)
	const slowFrom, end = 20 * 60, 30 * 60 // seconds
	agents := make([]Reading, 4)
	for second := range end {
		for i := range agents {
			r, bytes := &agents[i], uint64(1<<30)
			if second >= slowFrom {
				bytes /= 2
			}
			r.Path, r.Name, r.Alive = "/dir/"+string(rune('a'+i)), string(rune('a'+i)), procs.Yes
			r.ID = r.Path
			r.Totals.Out += bytes
			r.Totals.Transfers += 100
			r.Totals.Took += 1_000_000 * (1 << 30 / bytes) / 4
		}
		at := begin.Add(time.Duration(second) * 1001 * time.Millisecond) // never exactly on time
		b.Add(Sample{At: at, Agents: slices.Clone(agents)})
		if list := b.Findings(); (second < slowFrom || second > slowFrom+20) && (len(list) > 0) != (second >= slowFrom) {
			t.Fatalf("after %d s: %+v", second, list)
		}
	}
	f := b.Findings()[0]
	if since := f.Since.Sub(begin.Add(slowFrom * time.Second)); f.Kind != diagnose.JobSlower || len(f.Agents) != 4 || since < 0 || since > 25*time.Second {
		t.Errorf("%+v", f)
	}
	if n := len(b.recent); n < 178 || n > 205+40 {
		t.Errorf("%d samples are kept", n)
	}
}

func TestAgentsOfTheSameNameInTwoDirectoriesAreTwo(t *testing.T) {
	b := NewBoard(5*time.Second, 3)
	for second := range uint64(2) {
		s := Sample{At: begin.Add(time.Duration(second) * time.Second)}
		for i := range 8 {
			took := uint64(100)
			if i == 1 {
				took = 1000
			}
			n := 100 * second
			path := fmt.Sprintf("/%d/agent-%d", i/4, i%4)
			s.Agents = append(s.Agents, Reading{ID: path, Path: path, Name: path[3:], Service: "decode", Totals: Totals{
				Transfers: n, Out: n << 20, Took: n * took,
			}})
		}
		b.Add(s)
	}
	list := b.Findings()
	if len(list) != 1 || list[0].Kind != diagnose.Straggler || list[0].Agents[0].ID != "/0/agent-1" {
		t.Errorf("%+v", list)
	}
	if r := b.Row("/1/agent-1"); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}
