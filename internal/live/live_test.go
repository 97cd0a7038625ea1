// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// counted returns an agent that has counted events.
func counted(t *testing.T, config tally.Config, events ...ringbuf.Event) *tally.Agent {
	t.Helper()
	shape, err := tally.NewShape(config)
	must.OK(t, err)
	a := tally.NewAgent(shape)
	path := filepath.Join(t.TempDir(), "ring")
	w, err := ringbuf.Create(path, ringbuf.V4, 1<<16)
	must.OK(t, err)
	defer w.Close()
	for _, e := range events {
		must.OK(t, w.Push(e))
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	_, err = r.Read(1<<16, a.Add)
	must.OK(t, err)
	return a
}

func transfer(d tally.Direction, bytes, took, post uint64) []ringbuf.Event {
	return []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, post), ringbuf.NewEvent(ringbuf.TypeXferTime, took),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), bytes), ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1),
	}
}

func TestFrameIsTheSameAfterItWasSent(t *testing.T) {
	var events []ringbuf.Event
	for i := range uint64(100) {
		events = append(events, transfer(tally.Direction(i%2), 1<<(i%30), 10*i, i)...)
	}
	events = append(events, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	for _, kind := range []tally.HistogramKind{tally.Explicit, tally.Exponential, tally.NoHistogram} {
		h := tally.HistogramConfig{Kind: kind}
		a := counted(t, tally.Config{Duration: h, Size: h, Throughput: h}, events...)
		want := Frame{Time: time.Unix(1_700_000_000, 5).UTC(), Host: "gpu-7", Agents: []Agent{NewAgent(&engine.Snapshot{
			Agent: engine.Agent{ID: "pod 1/a", Name: "a", Path: "/proc/7/root/a"}, Up: engine.UpYes, Layout: ringbuf.V4,
			Stream: attribute.NewSet(attribute.String(semconv.ServiceName, "decode"), attribute.Int(semconv.ProcessPID, 7)),
			Start:  time.Unix(1_600_000_000, 0).UTC(), Totals: a.Look(),
		})}}
		line, err := want.Marshal()
		must.OK(t, err)
		if n := strings.Count(string(line), "\n"); n != 1 {
			t.Errorf("%d lines", n)
		}
		var got Frame
		must.OK(t, got.Unmarshal(line))
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Histogram{})); d != "" {
			t.Errorf("%v: (-sent +received)\n%s", kind, d)
		}
		if totals := got.Agents[0].Totals; totals.Transfers != 100 || totals.Errors["backend"] != 1 || got.Agents[0].Attributes[semconv.ProcessPID] != "7" {
			t.Errorf("%v: %+v", kind, totals)
		}
	}
}

func TestFramesOfOtherVersionsAreRejected(t *testing.T) {
	for line, want := range map[string]string{
		`{"version":2,"agents":{}}`:         "the Collector serves version 2, but this program reads version 1; use programs of the same release",
		`{"version":1,"error":"it hangs"}`:  "it hangs",
		`HTTP/1.1 400 Bad Request`:          "isn't a frame of the receiver nixl_shm",
		`{}`:                                "isn't a frame of the receiver nixl_shm",
		`{"version":1,"new":1,"agents":[]}`: "",
	} {
		err := new(Frame).Unmarshal([]byte(line))
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", line, err, want)
		}
	}
}

// Whatever the scales of the directions and the range of the values, each value is in its bucket.
func TestExplicitBucketsContainTheValues(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var events []ringbuf.Event
		var sizes []float64
		for range rnd.IntN(400) {
			size := rnd.Uint64N(1 << (1 + rnd.IntN(40)))
			d := tally.Direction(0)
			if size > 1<<10 {
				d = tally.Receive
			}
			sizes = append(sizes, float64(size))
			events = append(events, transfer(d, size, 1, 1)...)
		}
		a := counted(t, tally.Config{Size: tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 20}}, events...)
		h := newTotals(a.Look()).Sizes
		bounds, counts := h.Explicit()
		want := make([]uint64, len(bounds)+1)
		for _, size := range sizes {
			at, _ := slices.BinarySearch(bounds, size*(1-1e-12))
			want[at]++
		}
		if d := cmp.Diff(want, counts); d != "" {
			t.Errorf("seed %d: (-want +got)\n%s", seed, d)
		}
	}
}

// A client subtracts states of a histogram, so the counts in wide buckets must not decrease.
func TestLaterBucketsUniteEarlierOnes(t *testing.T) {
	var before []float64
	var events []ringbuf.Event
	for i := range uint64(40) {
		events = append(events, transfer(tally.Transmit, 3<<i%1_000_003, 1, 1)...)
		a := counted(t, tally.Config{Size: tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 10}}, events...)
		sizes := newTotals(a.Look()).Sizes
		bounds, _ := sizes.Explicit()
		for _, b := range bounds[1:] {
			if len(before) > 0 && b > before[1] && b < before[len(before)-1] && !slices.ContainsFunc(before, func(c float64) bool { return b > c*(1-1e-12) && b < c*(1+1e-12) }) {
				t.Fatalf("after %d events, bound %v is inside a bucket of %v", i, b, before)
			}
		}
		before = bounds
	}
}
