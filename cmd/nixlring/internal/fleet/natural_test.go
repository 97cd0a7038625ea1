// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNaturalComparesNumbersByValue(t *testing.T) {
	want := []string{"", "a", "a-2", "a-02b", "a-10", "a-10-1", "a-10-2", "a-19", "a-20", "a-99999999999999999999", "a-99999999999999999999b", "a1", "aa", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
