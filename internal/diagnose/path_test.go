// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// host is what the links of a host do in each of twenty half seconds, in which its agents write 2 GB.
type host struct {
	ports [][2]float64                   // bytes that each RDMA port sends and receives per byte that the agents write
	eth   func(i int) float64            // bytes that eth0 sends per byte that the agents write; nil if there is no interface
	begin uint64                         // the counters at first
	write float64                        // GB in each half second; default: 2
	spoil func(i int, f *diagnose.Frame) // changes a frame
}

func (h *host) frames() (frames []*diagnose.Frame) {
	const steps, gb = 20, 1e9
	if h.write == 0 {
		h.write = 2
	}
	sent, received, eth := make([]float64, len(h.ports)), make([]float64, len(h.ports)), 0.0
	for i := range steps + 1 {
		f := &diagnose.Frame{Time: time.Unix(100, 0).Add(time.Duration(i) * time.Second / 2)}
		moved := float64(i) * h.write * gb
		f.Agents = []diagnose.Agent{{
			Identity: diagnose.Identity{ID: "a", Name: "decode-0", Job: diagnose.Job{Service: "decode"}}, Up: diagnose.Yes,
			Moved: [2]diagnose.Moved{{Bytes: uint64(moved), Transfers: uint64(i) * 100, Seconds: float64(i)}},
		}, {Identity: diagnose.Identity{ID: "b", Name: "idle"}, Up: diagnose.Yes}}
		for n, p := range h.ports {
			f.Links = append(f.Links, diagnose.Link{Name: "mlx5_" + string(rune('0'+n)) + "/1", RDMA: true, Bytes: [2]uint64{h.begin + uint64(sent[n]), h.begin + uint64(received[n])}})
			sent[n], received[n] = sent[n]+p[0]*h.write*gb, received[n]+p[1]*h.write*gb
		}
		if h.eth != nil {
			f.Links = append(f.Links, diagnose.Link{Name: "eth0", Bytes: [2]uint64{uint64(eth), 5}})
			eth += h.eth(i) * h.write * gb
		}
		if h.spoil != nil {
			h.spoil(i, f)
		}
		frames = append(frames, f)
	}
	return frames
}

func always(v float64) func(int) float64 { return func(int) float64 { return v } }

func TestPathOfTransfersIsSaidOnlyIfItIsCertain(t *testing.T) {
	idle := [][2]float64{{0.002, 0.001}, {0.001, 0.001}}
	for name, tt := range map[string]struct {
		host
		want  string // "" for nothing
		found bool
	}{
		"RDMA":                             {host{begin: 9, ports: [][2]float64{{0.5, 0.1}, {0.55, 0}}, eth: always(0.001)}, "in 10 s, agents wrote 40.0 GB; the RDMA ports sent 42.0 GB, the network interfaces 40.0 MB", false},
		"one of four ports":                {host{begin: 9, ports: [][2]float64{{0.001, 0}, {1.02, 0}, {0, 0}, {0, 0}}}, "in 10 s, agents wrote 40.0 GB; the RDMA ports sent 40.8 GB (mostly mlx5_1/1 of 4 ports)", false},
		"TCP":                              {host{begin: 9, ports: idle, eth: always(1.04)}, "in 10 s, agents wrote 40.0 GB; the RDMA ports sent 120 MB, eth0 41.6 GB", true},
		"NVLink":                           {host{begin: 9, ports: idle, eth: always(0.01)}, "in 10 s, agents wrote 40.0 GB; the RDMA ports sent 120 MB, the network interfaces 400 MB: they went elsewhere, such as through NVLink", false},
		"half of it":                       {host{begin: 9, ports: [][2]float64{{0.5, 0}}, eth: always(0.5)}, "", false},
		"more other traffic":               {host{begin: 9, ports: idle, eth: always(1.5)}, "", false},
		"less other traffic":               {host{begin: 9, ports: idle, eth: always(0.5)}, "", false},
		"traffic at one time":              {host{begin: 9, ports: idle, eth: func(i int) float64 { return map[bool]float64{true: 2.04, false: 0.04}[i < 10] }}, "", false},
		"a port that never moved anything": {host{ports: [][2]float64{{0, 0}}, eth: always(1.04)}, "", false},
		"little":                           {host{begin: 9, write: 0.04, ports: idle, eth: always(1.04)}, "", false},
		"no interface is seen":             {host{begin: 9, ports: idle}, "", false},
		"no RDMA port":                     {host{eth: always(1.04)}, "", false},
		"a port that appears": {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(i int, f *diagnose.Frame) {
			if i > 10 {
				f.Links = append(f.Links, diagnose.Link{Name: "mlx5_9/1", RDMA: true, Bytes: [2]uint64{7, 7}})
			}
		}}, "", false},
		"counters that start again": {host{begin: 1e12, ports: idle, eth: always(1.04), spoil: func(i int, f *diagnose.Frame) {
			if i > 10 {
				f.Links[0].Bytes = [2]uint64{9, 9}
			}
		}}, "", false},
		"a port that never sends":    {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(_ int, f *diagnose.Frame) { f.Links[0].Bytes[0] = 0 }}, "", false},
		"a port that never receives": {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(_ int, f *diagnose.Frame) { f.Links[0].Bytes[1] = 0 }}, "", false},
		"counters that are read five times": {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(i int, f *diagnose.Frame) {
			if i%5 > 0 {
				f.Links = nil
			}
		}}, "in 10 s, agents wrote 40.0 GB; the RDMA ports sent 120 MB, eth0 41.6 GB", true},
		"counters that are read four times": {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(i int, f *diagnose.Frame) {
			if i%6 > 0 {
				f.Links = nil
			}
		}}, "", false},
		"counters that can't be read": {host{begin: 9, ports: idle, eth: always(1.04), spoil: func(_ int, f *diagnose.Frame) { f.Links = nil }}, "", false},
	} {
		r := diagnose.Now(tt.frames(), diagnose.Watch(10*time.Second))
		progress := r.Checks[slices.IndexFunc(r.Checks, func(c diagnose.Check) bool { return slices.Contains(c.Kinds, diagnose.NotRDMA) })].What
		_, text, _ := strings.Cut(progress, "; ")
		if !strings.HasPrefix(text, tt.want) || tt.want == "" && text != "" {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
		got := found(r.Findings)
		if len(got) > 0 != tt.found || tt.found && (got[0].Kind != diagnose.NotRDMA || r.Findings[0].Evidence[0] != tt.want || len(r.Findings[0].Agents) != 1) {
			t.Errorf("%s: found %v", name, r.Findings)
		}
	}
}

// Of agents that write and read, both directions must say the same.
func TestPathOfBothDirectionsMustAgree(t *testing.T) {
	for reads, want := range map[float64]bool{1.04: true, 0.3: false} {
		h := host{begin: 9, ports: [][2]float64{{0.001, 0.001}}, eth: always(1.04), spoil: func(i int, f *diagnose.Frame) {
			f.Agents[0].Moved[1] = f.Agents[0].Moved[0]
			f.Links[1].Bytes[1] = 5 + uint64(float64(i)*reads*2e9)
		}}
		if got := diagnose.Now(h.frames(), diagnose.Watch(10*time.Second)).Findings; len(got) > 0 != want {
			t.Errorf("eth0 receives %v of the reads: %+v", reads, got)
		}
	}
}
