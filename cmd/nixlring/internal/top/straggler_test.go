// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"strings"
	"testing"
	"time"
)

// boardOf returns a board with two samples of agents. All transfers of an agent have the
// throughput of its bucket.
func boardOf(paths []string, buckets []int, transfers uint64) *Board {
	b := NewBoard(5*time.Second, 3)
	for second := range 2 {
		s := Sample{At: begin.Add(time.Duration(second) * time.Second)}
		for i, p := range paths {
			counts := make([]uint64, len(throughputBounds)+1)
			counts[buckets[i]] = uint64(second) * transfers
			n := uint64(second) * transfers
			s.Agents = append(s.Agents, Reading{Path: p, Name: p, Totals: Totals{
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
		if r.Straggler {
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
		{"two of five are slow", same, []int{60, 50, 50, 60, 60}, 100, "/d/b /d/c"},
		{"three of five are slow", same, []int{60, 50, 50, 50, 60}, 100, ""},
		{"more than half as fast", same, []int{60, 60, 58, 60, 60}, 100, ""},
		{"throughput varies widely", same, []int{40, 50, 60, 70, 80}, 100, ""},
		{"one is fast", same, []int{60, 60, 80, 60, 60}, 100, ""},
		{"too few transfers", same, []int{60, 60, 50, 60, 60}, 9, ""},
		{"one of four is slow", same[:4], []int{60, 60, 50, 60}, 100, "/d/c"},
		{"one of three is slow", same[:3], []int{60, 50, 60}, 100, ""},
		{"slow agent in another directory", []string{"/d/a", "/d/b", "/e/c", "/d/d", "/d/e"}, []int{60, 60, 50, 60, 60}, 100, ""},
	} {
		if got := stragglers(boardOf(tt.paths, tt.buckets, tt.transfers)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAgentWithTheSameMeanThroughputIsNoStraggler(t *testing.T) {
	b := boardOf([]string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 100)
	c := b.Row("/d/c")
	c.Window.Took = b.Row("/d/a").Window.Took // the same bytes in the same time
	compare(b.Rows())
	if c.Straggler || c.Peers/c.ThroughputP50 < 9 {
		t.Errorf("median %v, median of the peers %v, straggler %v", c.ThroughputP50, c.Peers, c.Straggler)
	}
}

func TestStragglerHasAProblem(t *testing.T) {
	b := boardOf([]string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 100)
	r := b.Row("/d/c")
	if len(r.Problems) != 1 || r.Problems[0] != (Problem{Warn, "straggler: 10% of peers"}) || b.Sum().WithProblems != 1 {
		t.Errorf("%+v, %d with problems", r.Problems, b.Sum().WithProblems)
	}
	if ratio := r.ThroughputP50 / r.Peers; math.Abs(ratio-0.1) > 1e-9 {
		t.Errorf("ratio of the throughput to that of the peers is %v", ratio)
	}
	if b := boardOf([]string{"/d/a", "/d/b", "/d/c"}, []int{60, 50, 60}, 100); !math.IsNaN(b.Row("/d/a").Peers) {
		t.Error("an agent with two peers is compared with them")
	}
}

func TestAgentWithoutTransfersIsNoPeer(t *testing.T) {
	b := boardOf([]string{"/d/a", "/d/b", "/d/c", "/d/d"}, []int{60, 60, 50, 60}, 0)
	for _, r := range b.Rows() {
		if !math.IsNaN(r.Peers) || r.Straggler {
			t.Errorf("%+v", r)
		}
	}
}
