package top

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNatural(t *testing.T) {
	want := []string{"", "a", "a-2", "a-02b", "a-10", "a-10-1", "a-10-2", "a-99999999999999999999", "a-99999999999999999999b", "aa", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSort(t *testing.T) {
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
		Sort(Filter(rows, "", false), k, false) // every key knows how to compare
	}
}

func TestFilter(t *testing.T) {
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

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Throughput(0), "0 B/s"},
		{Throughput(12), "12.0 B/s"},
		{Throughput(999.4), "999 B/s"},
		{Throughput(999.6), "1.00 kB/s"},
		{Throughput(12.34e9), "12.3 GB/s"},
		{Throughput(2e21), "2000 EB/s"},
		{Memory(79 << 30), "79.0 GiB"},
		{Memory(1 << 40), "1.00 TiB"},
		{Bytes(999), "999 B"},
		{Bytes(132_896_923_648), "133 GB"},
		{Duration(math.NaN()), ""},
		{Duration(1.234e-6), "1.23 µs"},
		{Duration(980e-6), "980 µs"},
		{Duration(2.31e-3), "2.31 ms"},
		{Duration(12.3), "12.3 s"},
		{Duration(100), ">100 s"},
		{Bound(25e-6), "25 µs"},
		{Bound(1e-3), "1 ms"},
		{Bound(2.5e-3), "2.5 ms"},
		{Rate(0), "0"},
		{Rate(0.02), "0.02"},
		{Rate(1.25), "1.2"},
		{Rate(9.96), "10"},
		{Rate(12345), "12,345"},
		{Count(1234567), "1,234,567"},
		{Age(-1), "0 s"},
		{Age(90e9), "90 s"},
		{Age(600e9), "10 m"},
		{Age(3 * 3600e9), "3 h"},
		{Age(72 * 3600e9), "3 d"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
