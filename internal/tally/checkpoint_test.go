// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

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

func TestCheckpointRestoresTotals(t *testing.T) {
	for name, shape := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			before := busyAgent(t, shape)
			stored := before.AppendTotals([]byte("ahead"))
			stored = stored[len("ahead"):]
			after := NewAgent(shape)
			must.OK(t, after.RestoreTotals(stored))
			again := after.AppendTotals(nil)
			if !bytes.Equal(stored, again) {
				t.Errorf("restored totals are encoded as\n%x, want\n%x", again, stored)
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

func TestCheckpointAllowsChangesOfUnusedSettings(t *testing.T) {
	for name, c := range map[string][2]HistogramConfig{
		"explicit":    {{}, {MaxSize: 20}},
		"exponential": {{Kind: Exponential}, {Kind: Exponential, Bounds: []float64{1, 2}}},
		"none":        {{Kind: NoHistogram}, {Kind: NoHistogram, MaxSize: 20, Bounds: []float64{1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			stored := busyAgent(t, shapeOf(t, Config{Duration: c[0]})).AppendTotals(nil)
			if err := NewAgent(shapeOf(t, Config{Duration: c[1]})).RestoreTotals(stored); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckpointAddsNamesBeyondTheLimitToTheOverflow(t *testing.T) {
	before := busyAgent(t, shapeOf(t, Config{}))
	names := len(before.Series())
	stored := before.AppendTotals(nil)
	for limit := 1; limit <= names; limit++ {
		after := NewAgent(shapeOf(t, Config{MaxNames: limit}))
		must.OK(t, after.RestoreTotals(stored))
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
func TestCheckpointKeepsTheSeriesOfTypes(t *testing.T) {
	shape := shapeOf(t, Config{MaxNames: 2})
	before := NewAgent(shape)
	count := func(a *Agent, types ...ringbuf.Type) {
		for _, kind := range types {
			a.unknown(noCategory, kind, 1, ringbuf.V4)
		}
	}
	count(before, 1000, 1001, 1002)
	stored := before.AppendTotals(nil)
	after := NewAgent(shape)
	must.OK(t, after.RestoreTotals(stored))
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

func TestCheckpointRejectsAnotherShape(t *testing.T) {
	list := shapes(t)
	stored := NewAgent(list["default"]).AppendTotals(nil)
	if err := NewAgent(list["exponential"]).RestoreTotals(stored); !errors.Is(err, ErrShape) {
		t.Errorf("error %v, want ErrShape", err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	list := shapes(f)
	for _, shape := range list {
		stored := busyAgent(f, shape).AppendTotals(nil)
		f.Add(stored)
		f.Add(stored[:len(stored)/2])
		f.Add(append(stored, 0))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		for _, shape := range list {
			a := NewAgent(shape)
			err := a.RestoreTotals(stored)
			if err != nil {
				if !errors.Is(err, ErrCheckpoint) && !errors.Is(err, ErrShape) {
					t.Errorf("error is %v", err)
				}
				continue
			}
			// An accepted checkpoint is usable.
			a.Add(ringbuf.Batch{})
			a.duration.record(12345)
			a.MemoryUsage()
			if len(a.Series()) > shape.maxNames {
				t.Errorf("%d series are more than %d", len(a.Series()), shape.maxNames)
			}
		}
	})
}
