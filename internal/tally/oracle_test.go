// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// compare compares the points and the torn groups of an agent with those of all its events.
func compare(t *testing.T, want *oracle.Oracle, got *Agent) {
	t.Helper()
	w, g := want.Points(), pointsOf(&got.Totals)
	if !reflect.DeepEqual(w, g) { // takes a fraction of the time of Diff, which matters when fuzzing
		if d := cmp.Diff(w, g, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("totals (-want +got)\n%s", d)
		}
	}
	if w, g := want.TornGroups(), got.TornGroups(); w != int64(g) {
		t.Errorf("%d torn groups, want %d", g, w)
	}
}

// pointsOf returns the points of totals.
func pointsOf(totals *Totals) oracle.Points {
	points := make(oracle.Points)
	add := func(p *Point) {
		name := p.Metric.Name
		var pairs []string
		for _, a := range p.Attributes {
			pairs = append(pairs, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		if len(pairs) > 0 {
			name += "{" + strings.Join(pairs, ",") + "}"
		}
		if _, twice := points[name]; twice {
			name += " twice"
		}
		switch {
		case p.Histogram != nil:
			points[name] = readDistribution(p.Histogram)
		case p.Metric.Number == semconv.Float64:
			points[name] = p.Float
		default:
			points[name] = p.Int
		}
	}
	totals.Points(add)
	totals.EventPoints(add)
	return points
}

func readDistribution(h *Histogram) oracle.Distribution {
	return oracle.Distribution{
		Count: h.Count(), Sum: h.Sum(), Min: h.Min(), Max: h.Max(),
		Bounds: h.Bounds(), Counts: append([]uint64(nil), h.Counts()...),
	}
}

func TestPointsOfARing(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{}))
	a.Found(1, 2)
	a.Saturated()
	for range 2 {
		a.Restarted()
	}
	for range 3 {
		a.ForeignRead()
	}
	for _, layout := range ringbuf.Layouts() {
		got := make(map[string]any)
		a.RingPoints(layout, func(p *Point) {
			if got[p.Metric.Name] = p.Int; p.Metric.Number == semconv.Float64 {
				got[p.Metric.Name] = p.Float
			}
		})
		want := map[string]any{
			semconv.RingCapacity.Name: int64(2), semconv.RingUtilization.Name: 1., semconv.RingSaturations.Name: int64(1),
			semconv.RingRestarts.Name: int64(2), semconv.RingForeignReads.Name: int64(3),
		}
		if layout >= ringbuf.V4 { // before, agents don't write the events of a transfer next to each other
			want[semconv.RingTornGroups.Name] = int64(0)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", layout, d)
		}
	}
}

// The first event beyond the limit of names is counted.
func TestOneEventBeyondTheLimitOfNamesHasAPoint(t *testing.T) {
	for name, tt := range map[string]struct {
		events []ringbuf.Event
		want   []string
	}{
		"valued": {
			[]ringbuf.Event{ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "a", 1), ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "b", 9)},
			[]string{semconv.EventValue.Name + "{otel.metric.overflow=true}", semconv.Events.Name + "{otel.metric.overflow=true}"},
		},
		"plain": {
			[]ringbuf.Event{ringbuf.NewNamedEvent(99, "a", 1), ringbuf.NewNamedEvent(99, "b", 9)},
			[]string{semconv.TelemetryEventsUnknown.Name + "{otel.metric.overflow=true}", semconv.Events.Name + "{otel.metric.overflow=true}"},
		},
	} {
		a := NewAgent(shapeOf(t, Config{MaxNames: 1}))
		feed(t, a, ringbuf.V1, tt.events)
		points := pointsOf(&a.Totals)
		for _, point := range tt.want {
			if points[point] == nil {
				t.Errorf("%s: no %s in %v", name, point, points)
			}
		}
	}
}
