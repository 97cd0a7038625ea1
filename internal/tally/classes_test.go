// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// timesByClass returns the transfer times and post times of all known events, by size
// class. Unlike the package, which tracks groups, it checks the neighbors of each time.
// An empty name stands for a gap.
func timesByClass(known []sample) (durations, posts map[string][]uint64) {
	durations, posts = make(map[string][]uint64), make(map[string][]uint64)
	names := func(from int) (list [4]string) {
		for i := range list {
			if at := from + i; at >= 0 && at < len(known) {
				list[i] = known[at].name
			}
		}
		return list
	}
	classOf := func(first int) string {
		for _, d := range []string{"tx", "rx"} {
			if names(first) != [4]string{"agent_xfer_post_time", "agent_xfer_time", "agent_" + d + "_bytes", "agent_" + d + "_requests_num"} {
				continue
			}
			switch kib := float64(known[first+2].value) / 1024; {
			case kib <= 64:
				return "le_64KiB"
			case kib <= 1024:
				return "le_1MiB"
			case kib <= 16*1024:
				return "le_16MiB"
			default:
				return "gt_16MiB"
			}
		}
		return ""
	}
	for i, s := range known[:len(known)-unfinished(known)] {
		switch s.name {
		case "agent_xfer_time":
			durations[classOf(i-1)] = append(durations[classOf(i-1)], s.value)
		case "agent_xfer_post_time":
			posts[classOf(i)] = append(posts[classOf(i)], s.value)
		}
	}
	return durations, posts
}

// unfinished returns the number of events at the end that belong to an incomplete group.
func unfinished(known []sample) (n int) {
	order := []string{"agent_xfer_post_time", "agent_xfer_time", "agent_tx_bytes", "agent_rx_bytes"}
	next := len(order)
	for _, s := range slices.Backward(known) {
		at := slices.Index(order, s.name)
		if at < 0 || at >= next || at == 2 && next == 3 {
			break
		}
		next = at
		n++
	}
	return n
}

// compareClasses compares an agent's times by class with those of all its known
// events. It also checks that they are all its times.
func compareClasses(t *testing.T, known []sample, got *tally.Agent, c tally.HistogramConfig) {
	t.Helper()
	durations, posts := timesByClass(known)
	pending := make(map[string]int)
	for _, s := range known[len(known)-unfinished(known):] {
		pending[s.name]++
	}
	check := func(name string, want map[string][]uint64, list func(func(string, *tally.Histogram) bool), all *tally.Histogram) {
		t.Helper()
		count := uint64(pending[name])
		for class, h := range list {
			values := want[class]
			delete(want, class)
			count += h.Count()
			if len(values) == 0 {
				if h.Count() != 0 {
					t.Errorf("%s %q: %d values, want none", name, class, h.Count())
				}
				continue
			}
			wantOne := distributionOf(values, 1e6, newModel().durationBounds)
			if c.Kind == tally.Exponential {
				wantOne.Bounds, wantOne.Counts = nil, nil
				if d := cmp.Diff(sdkHistogram(t, values, 1e6, c.MaxSize), h.Buckets(), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s %q (-SDK +got)\n%s", name, class, d)
				}
			}
			if d := cmp.Diff(wantOne, readDistribution(h), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s %q (-want +got)\n%s", name, class, d)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: no classes for %v", name, want)
		}
		if count != all.Count() {
			t.Errorf("%s: %d in all classes and pending, %d in all", name, count, all.Count())
		}
	}
	check("agent_xfer_time", durations, got.Durations(), got.Duration())
	check("agent_xfer_post_time", posts, got.PostDurations(), got.PostDuration())
}

var classConfigs = map[string]tally.HistogramConfig{
	"explicit":    {},
	"exponential": {Kind: tally.Exponential, MaxSize: 20},
}

func TestSizeClassesOfRealRingsMatchTheirJSON(t *testing.T) {
	for kind, config := range classConfigs {
		for _, c := range ringtest.Cases(t) {
			if !c.Readable() {
				continue
			}
			t.Run(kind+"/"+c.Name, func(t *testing.T) {
				file, err := os.ReadFile(c.File)
				if err != nil {
					t.Fatal(err)
				}
				mem := memory(len(file))
				copy(mem, file)
				r := openRing(t, mem)
				agent := tally.NewAgent(shape(t, tally.Config{Duration: config, SizeClasses: true}))
				if _, err := r.Read(0, agent.Add); err != nil {
					t.Fatal(err)
				}
				want := newModel()
				for i := range c.Pending {
					want.add(r.Layout(), eventOf(&c.Pending[i]))
				}
				compareClasses(t, want.all, agent, config)
			})
		}
	}
}

func TestSizeClassesOfRandomEventsMatchTheModel(t *testing.T) {
	for kind, config := range classConfigs {
		s := shape(t, tally.Config{Duration: config, SizeClasses: true, MaxNames: 100_000})
		for _, l := range ringbuf.Layouts() {
			t.Run(kind+"/"+l.String(), func(t *testing.T) {
				r := newRing(t, l, 512)
				for seed := range uint64(10) {
					g := generator{rand.New(rand.NewPCG(seed, 11)), l}
					agent, want := tally.NewAgent(s), newModel()
					for range 1 + g.IntN(4) {
						events := g.events(g.IntN(1000))
						r.feed(agent, events, g.IntN(500), g.IntN(20), g.IntN(2))
						for i := range events {
							want.add(l, events[i])
						}
						switch g.IntN(6) {
						case 0:
							agent.Restarted(true)
							want.restarted()
						case 1:
							agent.ForeignRead()
							want.missed()
						case 2:
							agent.Missed()
							want.missed()
						default:
							agent = storeAndRestore(t, agent, s)
						}
					}
					compareClasses(t, want.all, agent, config)
					if t.Failed() {
						t.Fatalf("with seed %d", seed)
					}
				}
			})
		}
	}
}

func TestCheckpointRejectsAChangeOfSizeClasses(t *testing.T) {
	with, without := shape(t, tally.Config{SizeClasses: true}), shape(t, tally.Config{})
	for _, c := range []struct{ before, after *tally.Shape }{{with, without}, {without, with}} {
		stored := tally.NewAgent(c.before).AppendTotals(nil)
		if err := tally.NewAgent(c.after).RestoreTotals(stored); err == nil {
			t.Error("totals were restored with other size classes")
		}
	}
}

func TestSnapshotCopiesSizeClasses(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{SizeClasses: true}))
	r := newRing(t, ringbuf.V4, 512)
	g := generator{rand.New(rand.NewPCG(2, 2)), ringbuf.V4}
	want := newModel()
	var snapshot *tally.Totals
	for range 3 {
		events := g.events(400)
		r.feed(agent, events)
		for i := range events {
			want.add(ringbuf.V4, events[i])
		}
		snapshot = agent.Snapshot(snapshot)
		before, _ := timesByClass(want.all)
		r.feed(agent, events)
		for class, h := range snapshot.Durations() {
			if h.Count() != uint64(len(before[class])) {
				t.Errorf("%q: %d durations, want %d", class, h.Count(), len(before[class]))
			}
		}
		for i := range events {
			want.add(ringbuf.V4, events[i])
		}
	}
}
