// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// busyAgent returns an agent with all kinds of totals.
func busyAgent(t testing.TB, shape *Shape) *Agent {
	t.Helper()
	a := NewAgent(shape)
	for _, layout := range ringbuf.Layouts() {
		path := filepath.Join(t.TempDir(), layout.String())
		w, err := ringbuf.Create(path, layout, 256)
		must.OK(t, err)
		defer w.Close()
		var events []ringbuf.Event
		for kind := range ringbuf.Type(ringbuf.Types + 2) {
			events = append(events, ringbuf.NewEvent(kind, uint64(kind)*1e6), ringbuf.NewEvent(kind, 1<<63))
		}
		if layout.Named() {
			events = append(events, ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "progress", 1<<63),
				ringbuf.NewNamedEvent(ringbuf.CategoryError, "BAD_STATUS", 1), ringbuf.NewNamedEvent(99, "\xff", 7))
		}
		if n, err := w.PushBatch(events); err != nil || n != len(events) {
			t.Fatalf("pushed %d of %d events: %v", n, len(events), err)
		}
		r, err := ringbuf.OpenReader(path, ringbuf.Observe)
		must.OK(t, err)
		defer r.Close()
		if _, err := r.Read(0, a.Add); err != nil {
			t.Fatal(err)
		}
		a.Found(17, 256)
		a.Saturated()
		a.Restarted()
	}
	a.ForeignRead()
	return a
}

func shapes(t testing.TB) map[string]*Shape {
	t.Helper()
	list := map[string]*Shape{}
	for name, cfg := range map[string]Config{
		"default":     {},
		"few names":   {MaxNames: 2},
		"none":        {Duration: HistogramConfig{Kind: NoHistogram}},
		"exponential": {Duration: HistogramConfig{Kind: Exponential, MaxSize: 20}, Size: HistogramConfig{Kind: Exponential}},
	} {
		list[name] = shapeOf(t, cfg)
	}
	return list
}

func shapeOf(t testing.TB, cfg Config) *Shape {
	t.Helper()
	shape, err := NewShape(cfg)
	must.OK(t, err)
	return shape
}

func TestStateRestoresTotals(t *testing.T) {
	for name, shape := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			before := busyAgent(t, shape)
			after := restored(t, shape, store(t, before))
			if d := cmp.Diff(string(store(t, before)), string(store(t, after))); d != "" {
				t.Errorf("stored again (-want +got):\n%s", d)
			}
			got, known := after.MemoryUsage()
			if want, wantKnown := before.MemoryUsage(); got != want || known != wantKnown {
				t.Errorf("memory usage is %d (known: %v), want %d (known: %v)", got, known, want, wantKnown)
			}
			if got, want := after.Duration().Buckets(), before.Duration().Buckets(); got.Scale != want.Scale || len(got.Counts) != len(want.Counts) {
				t.Errorf("buckets are %+v, want %+v", got, want)
			}
			events := map[string]uint64{}
			after.Events(func(category, name string, n uint64) { events[category+" "+name] += n })
			before.Events(func(category, name string, n uint64) { events[category+" "+name] -= n })
			for name, n := range events {
				if n != 0 {
					t.Errorf("events of %s are off by %d", name, int64(n))
				}
			}
		})
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

func TestStateRejectsInvalidSeries(t *testing.T) {
	shape := shapeOf(t, Config{})
	for name, series := range map[string][]seriesState{
		"category": {{Category: 99, Name: "event"}},
		"name":     {{Category: noCategory, Name: "\xff"}},
		"twice":    {{Category: noCategory, Name: "event"}, {Category: noCategory, Name: "event"}},
	} {
		state := NewAgent(shape).State()
		state.Series = series
		if _, err := shape.Restore(state); !errors.Is(err, ErrState) {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
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

func TestStateRejectsAnotherShape(t *testing.T) {
	list := shapes(t)
	if _, err := list["exponential"].Restore(NewAgent(list["default"]).State()); !errors.Is(err, ErrShape) {
		t.Errorf("error %v, want ErrShape", err)
	}
}

// FuzzState restores any state. If it is accepted, the totals are usable, and storing them again is
// possible.
func FuzzState(f *testing.F) {
	list := shapes(f)
	for _, shape := range list {
		f.Add(store(f, busyAgent(f, shape)))
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
				if !errors.Is(err, ErrState) {
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
