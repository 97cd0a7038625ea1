// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// busyAgent returns an agent with all kinds of totals.
func busyAgent(t testing.TB, shape *Shape) *Agent {
	t.Helper()
	a := NewAgent(shape)
	for _, layout := range ringbuf.Layouts() {
		var events []ringbuf.Event
		for kind := range ringbuf.Type(ringbuf.Types + 2) {
			events = append(events, ringbuf.NewEvent(kind, uint64(kind)*1e6), ringbuf.NewEvent(kind, 1<<63))
		}
		if layout.Named() {
			events = append(events, ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "progress", 1<<63),
				ringbuf.NewNamedEvent(ringbuf.CategoryError, "BAD_STATUS", 1), ringbuf.NewNamedEvent(99, "\xff", 7))
		}
		a.Add(batchOf(t, layout, events...))
		a.Found(17, 256)
		a.Saturated()
		a.Restarted()
	}
	a.ForeignRead()
	return a
}

func TestStateRestoresTotals(t *testing.T) {
	for name, config := range configs() {
		shape := shapeOf(t, config)
		before := busyAgent(t, shape)
		after := restored(t, shape, store(t, before))
		if d := cmp.Diff(pointsOf(&before.Totals), pointsOf(&after.Totals), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: points (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(string(store(t, before)), string(store(t, after))); d != "" {
			t.Errorf("%s: stored again (-want +got):\n%s", name, d)
		}
	}
}

// The totals of an agent are first counted apart from those of its earlier runs.
func TestTotalsOfALaterRunAreAddedToEarlierOnes(t *testing.T) {
	first := []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 9), ringbuf.NewEvent(ringbuf.TypeTxBytes, 5)}
	later := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 7), ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, 3), ringbuf.NewEvent(ringbuf.TypeTxBytes, 1<<40),
		ringbuf.NewEvent(ringbuf.Type(ringbuf.Types+1), 4), ringbuf.NewEvent(ringbuf.TypeXferPostTime, 2),
	}
	for name, config := range configs() {
		if config.MaxNames > 0 {
			continue // the overflow may differ
		}
		shape := shapeOf(t, config)
		apart, together := busyAgent(t, shape), busyAgent(t, shape)
		feed(t, apart, ringbuf.V4, first)
		feed(t, together, ringbuf.V4, first)
		apart.Restarted()
		together.Restarted()
		next := NewAgent(shape)
		next.Opened(true)
		for _, a := range []*Agent{next, together} {
			feed(t, a, ringbuf.V4, later)
			feed(t, a, ringbuf.V1, []ringbuf.Event{ringbuf.NewNamedEvent(ringbuf.CategoryError, "BAD_STATUS", 5)})
			a.Restarted()
			feed(t, a, ringbuf.V4, later)
			a.Saturated()
			a.Found(3, 64)
			a.Missed()
		}
		apart.Join(next)
		if d := cmp.Diff(pointsOf(&together.Totals), pointsOf(&apart.Totals), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: points (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(string(store(t, together)), string(store(t, apart))); d != "" {
			t.Errorf("%s: stored (-want +got):\n%s", name, d)
		}
		if together.Misses() != apart.Misses() || together.Utilization() != apart.Utilization() {
			t.Errorf("%s: %d misses, want %d; utilization %v, want %v", name, apart.Misses(), together.Misses(), apart.Utilization(), together.Utilization())
		}
	}
}

func TestStateAllowsChangesOfUnusedSettings(t *testing.T) {
	for name, c := range map[string][2]HistogramConfig{
		"explicit":    {{}, {MaxSize: 20}},
		"exponential": {{Kind: Exponential}, {Kind: Exponential, Bounds: []float64{1, 2}}},
		"none":        {{Kind: NoHistogram}, {Kind: NoHistogram, MaxSize: 20, Bounds: []float64{1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			restored(t, shapeOf(t, Config{Duration: c[1]}), store(t, busyAgent(t, shapeOf(t, Config{Duration: c[0]}))))
		})
	}
}

func TestStateAddsNamesBeyondTheLimitToTheOverflow(t *testing.T) {
	before := busyAgent(t, shapeOf(t, Config{}))
	names := len(before.Series())
	stored := store(t, before)
	for limit := 1; limit <= names; limit++ {
		after := restored(t, shapeOf(t, Config{MaxNames: limit}), stored)
		if got := len(after.Series()); got != limit {
			t.Errorf("%d series, want %d", got, limit)
		}
		for _, of := range []bool{false, true} {
			if got, want := extra(after, of), extra(before, of); got != want {
				t.Errorf("limit %d, valued %v: %+v of all series, want %+v", limit, of, got, want)
			}
		}
	}
}

// A type with a series keeps it, even if the limit is reached.
func TestStateKeepsTheSeriesOfTypes(t *testing.T) {
	shape := shapeOf(t, Config{MaxNames: 2})
	before := NewAgent(shape)
	count := func(a *Agent, types ...ringbuf.Type) {
		for _, kind := range types {
			a.unknown(noCategory, kind, 1, ringbuf.V4)
		}
	}
	count(before, 1000, 1001, 1002)
	after := restored(t, shape, store(t, before))
	count(after, 1000, 1001, 1002)
	for _, s := range after.Series() {
		if s.Events != 2 {
			t.Errorf("%s: %d events, want 2", s.Name, s.Events)
		}
	}
	if plain, _ := after.Overflow(); plain.Events != 2 {
		t.Errorf("%d events beyond the limit, want 2", plain.Events)
	}
}

func TestStateIsRestoredOnlyIfAnAgentCanHaveIt(t *testing.T) {
	shape := shapeOf(t, configs()["exponential"])
	series := func(list ...Series) func(*State) { return func(s *State) { s.Series = append(s.Series, list...) } }
	buckets := func(scale, offset int32, n int) func(*State) {
		return func(s *State) {
			s.Histograms[0].Exponential = &Buckets{Scale: scale, Offset: offset, Counts: slices.Repeat([]uint64{1}, n)} // of sizes
		}
	}
	group := func(g groups) func(*State) { return func(s *State) { s.Group = g } }
	event := Series{Number: noCategory, Name: "event"}
	for name, c := range map[string]struct {
		change func(*State)
		want   error
	}{
		"series":                    {series(event), nil},
		"another shape":             {func(s *State) { s.Shape++ }, errShape},
		"category":                  {series(Series{Number: 99, Name: "event"}), errState},
		"name":                      {series(Series{Number: noCategory, Name: "\xff"}), errState},
		"name twice":                {series(event, event), errState},
		"number of explicit bounds": {func(s *State) { s.Histograms = [6]histogramState{} }, errState},
		"largest scale":             {buckets(maxScale, 0, defaultMaxSize), nil},
		"above the largest scale":   {buckets(maxScale+1, 0, 1), errState},
		"smallest scale":            {buckets(minScale, -1, 1), nil},
		"below the smallest scale":  {buckets(minScale-1, -1, 1), errState},
		"number of buckets":         {buckets(maxScale, 0, defaultMaxSize+1), errState},
		"range up to infinity":      {buckets(0, 1010, 20), errState},
		"last bucket at infinity":   {buckets(0, 1023, 2), errState},
		"range down to zero":        {buckets(0, -1080, 20), errState},
		"middle of the range":       {buckets(0, 0, 1), nil},
		"registered memory":         {func(s *State) { s.Memory.RegisteredBefore.Lo = 1 }, errState},
		"deregistered memory":       {func(s *State) { s.Memory.DeregisteredBefore.Lo = 1 }, errState},
		"group":                     {group(groups{Seen: atRequests - 1, Dir: 1, Written: [2]places{allPlaces, allPlaces}}), nil},
		"complete group":            {group(groups{Seen: atRequests}), errState},
		"negative direction":        {group(groups{Dir: -1}), errState},
		"direction":                 {group(groups{Dir: 2}), errState},
		"places of transmitting":    {group(groups{Written: [2]places{allPlaces + 1}}), errState},
		"places of receiving":       {group(groups{Written: [2]places{0, allPlaces + 1}}), errState},
	} {
		state := NewAgent(shape).State()
		c.change(state)
		if _, err := shape.Restore(state); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

// More memory was deregistered than registered, so registrations are missing.
func TestStateWithTooLittleMemoryDoesNotKnowTheUsage(t *testing.T) {
	shape := shapeOf(t, Config{})
	state := NewAgent(shape).State()
	state.Memory.Known = true
	state.Counters[ringbuf.TypeMemoryDeregistered].record(7)
	a, err := shape.Restore(state)
	must.OK(t, err)
	if usage, known := a.MemoryUsage(); known {
		t.Errorf("the usage is %d", usage)
	}
}

// extra adds up all series, including the overflow, that are valued or not.
func extra(a *Agent, valued bool) (all Total) {
	plain, withValue := a.Overflow()
	for _, s := range append([]Series{*plain, *withValue}, a.Series()...) {
		if s.Valued == valued {
			all.Events += s.Events
			all.Sum.plus(s.Sum)
		}
	}
	return all
}

// FuzzState restores any state. If it is accepted, the totals are usable, and storing them again is
// possible.
func FuzzState(f *testing.F) {
	var list []*Shape
	for _, config := range configs() {
		list = append(list, shapeOf(f, config))
		f.Add(store(f, busyAgent(f, list[len(list)-1])))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		var s State
		if json.Unmarshal(stored, &s) != nil {
			return
		}
		for _, shape := range list {
			s.Shape = shape.hash()
			a, err := shape.Restore(&s)
			if err != nil {
				if !errors.Is(err, errState) {
					t.Errorf("error is %v", err)
				}
				continue
			}
			if len(a.Series()) > shape.maxNames {
				t.Errorf("%d series are more than %d", len(a.Series()), shape.maxNames)
			}
			if usage, known := a.MemoryUsage(); usage < 0 || !known && usage != 0 {
				t.Errorf("memory usage is %d (known: %v)", usage, known)
			}
			restored(t, shape, store(t, a))
			a.Add(ringbuf.Batch{})
			a.duration.record(12345)
			a.Restarted()
			if sum := a.Snapshot().Duration().Sum(); math.IsNaN(sum) || sum < 0 {
				t.Errorf("sum is %v", sum)
			}
		}
	})
}

// store returns the stored form of an agent's totals.
func store(t testing.TB, a *Agent) []byte {
	t.Helper()
	stored, err := json.Marshal(a.State())
	must.OK(t, err)
	return stored
}

// restored is the reverse of store.
func restored(t testing.TB, shape *Shape, stored []byte) *Agent {
	t.Helper()
	var s State
	must.OK(t, json.Unmarshal(stored, &s))
	a, err := shape.Restore(&s)
	must.OK(t, err)
	return a
}
