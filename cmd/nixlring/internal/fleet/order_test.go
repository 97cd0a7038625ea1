// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

func TestNaturalComparesNumbersByValue(t *testing.T) {
	want := []string{"", "a", "a-2", "a-02b", "a-10", "a-10-1", "a-10-2", "a-99999999999999999999", "a-99999999999999999999b", "aa", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func agent(name, layout string) *diagnose.Agent {
	return &diagnose.Agent{Identity: diagnose.Identity{ID: name, Name: name}, Path: name, Layout: layout}
}

func TestSortOrdersRowsByKeyThenName(t *testing.T) {
	rows := []Row{
		{Agent: agent("c", "v1"), Rates: Rates{Out: 1, P50: math.NaN()}},
		{Agent: agent("a10", "v4"), Rates: Rates{Out: 3, P50: 2}},
		{Agent: agent("a2", "v4"), Rates: Rates{Out: 3, P50: 1}, Place: 1},
	}
	for _, tt := range []struct {
		key     Key
		reverse bool
		want    []string
	}{
		{ByName, false, []string{"a2", "a10", "c"}},
		{ByName, true, []string{"c", "a10", "a2"}},
		{ByOut, false, []string{"a2", "a10", "c"}},
		{ByOut, true, []string{"c", "a2", "a10"}},
		{ByP50, false, []string{"a10", "a2", "c"}},
		{ByP50, true, []string{"a2", "a10", "c"}},
		{ByLayout, false, []string{"c", "a2", "a10"}},
		{ByProblems, false, []string{"a2", "a10", "c"}},
		{ByReader, false, []string{"a2", "a10", "c"}},
	} {
		list := Filter(rows, "", false)
		Sort(list, tt.key, tt.reverse)
		var got []string
		for _, r := range list {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, reverse %v: %s", tt.key, tt.reverse, diff)
		}
	}
	for _, k := range Keys() {
		Sort(Filter(rows, "", false), k, false) // must not panic
	}
}

func TestFilterSelectsByNameAndProblems(t *testing.T) {
	rows := []Row{
		{Agent: agent("Prefill-1", "")},
		{Agent: agent("prefill-2", ""), Place: 1},
		{Agent: agent("decode", ""), Problems: []Problem{{diagnose.Info, "x"}}},
	}
	if got := Filter(rows, "PRE", false); len(got) != 2 {
		t.Errorf("by name: %v", got)
	}
	if got := Filter(rows, "", true); len(got) != 1 || got[0].Name != "prefill-2" {
		t.Errorf("by problems: %v", got)
	}
}
