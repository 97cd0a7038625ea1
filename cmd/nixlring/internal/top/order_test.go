// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestSortOrdersRowsByKeyThenName(t *testing.T) {
	rows := []Row{
		{Reading: Reading{Path: "c", Name: "c", Layout: "v1"}, Out: 1, P50: math.NaN()},
		{Reading: Reading{Path: "a10", Name: "a10", Layout: "v4"}, Out: 3, P50: 2},
		{Reading: Reading{Path: "a2", Name: "a2", Layout: "v4"}, Out: 3, P50: 1, Problems: []Problem{{Bad, "x"}}},
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
		{Reading: Reading{Name: "Prefill-1"}},
		{Reading: Reading{Name: "prefill-2"}, Problems: []Problem{{Warn, "x"}}},
		{Reading: Reading{Name: "decode"}, Problems: []Problem{{Info, "x"}}},
	}
	if got := Filter(rows, "PRE", false); len(got) != 2 {
		t.Errorf("by name: %v", got)
	}
	if got := Filter(rows, "", true); len(got) != 1 || got[0].Name != "prefill-2" {
		t.Errorf("by problems: %v", got)
	}
}
