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
