// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestSumsCountOverflows(t *testing.T) {
	var s sums
	for range 3 {
		s.add(ringbuf.V4, kind(ringbuf.TypeTxBytes), math.MaxUint64)
	}
	s.add(ringbuf.V1, kind(ringbuf.TypeTxBytes), 5)
	want := Events{Events: 4, ByName: []Named{
		{Category: "transfer", Name: "agent_tx_bytes", Count: 4, Sum: 2, Last: 5, Overflows: 3},
	}}
	got := s.totals()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got.add(&want)
	if n := got.ByName[0]; n.Sum != 4 || n.Overflows != 6 || n.Count != 8 {
		t.Errorf("sum of two: %+v", n)
	}
}

func TestErrorsAreCountedUnderBothNames(t *testing.T) {
	var s sums
	s.add(ringbuf.V1, kind(ringbuf.TypeErrNotFound), 1)
	s.add(ringbuf.V1, kind(ringbuf.TypeErrNotFound), 1)
	s.add(ringbuf.V2, kind(ringbuf.TypeErrNotFound), 1)
	want := Events{Events: 3, ByName: []Named{
		{Category: "error", Name: "NIXL_ERR_NOT_FOUND", Count: 2, Sum: 2, Last: 1},
		{Category: "error", Name: "agent_err_not_found", Count: 1, Sum: 1, Last: 1},
	}}
	if diff := cmp.Diff(want, s.totals()); diff != "" {
		t.Error(diff)
	}
	if of := s.both(kind(ringbuf.TypeErrNotFound)); of.count != 3 {
		t.Errorf("%d errors of all layouts", of.count)
	}
}

func TestErrorWeightsAddUpTo256(t *testing.T) {
	sum := 0
	for _, e := range errorWeights {
		sum += e.weight
	}
	if sum != 256 || len(errorWeights) != 12 {
		t.Errorf("the weights of %d errors add up to %d", len(errorWeights), sum)
	}
}
