// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringtest

import (
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestJSONOfCasesMatchesTheirHeaders(t *testing.T) {
	cases := Cases(t)
	if len(cases) != 49 {
		t.Errorf("%d rings, want 49: 15 for each of three releases and 4 of agents", len(cases))
	}
	for _, c := range cases {
		h := ReadHeader(t, c.File)
		want := Header{
			WritePos: c.WritePos, ReadPos: c.ReadPos, Version: c.Version, ExpectedVersion: c.ExpectedVersion,
			Capacity: c.Capacity, Mask: c.Mask,
		}
		if h != want {
			t.Errorf("%s: header %+v, JSON %+v", c.Name, h, want)
		}
		if pending := (c.WritePos - c.ReadPos) & c.Mask; c.Readable() && pending != uint64(len(c.Pending)) {
			t.Errorf("%s: %d events pending, %d in its JSON", c.Name, pending, len(c.Pending))
		}
	}
}

func TestEditOfACopyDoesNotChangeTheFixture(t *testing.T) {
	c := Find(t, "v1.4.0/full_cap8")
	before, err := os.ReadFile(c.File)
	must.OK(t, err)
	path := Copy(t, c)
	Edit(t, path, func(h *Header) { h.ReadPos = 3 })
	if got := ReadHeader(t, path); got.ReadPos != 3 || got.WritePos != c.WritePos {
		t.Errorf("header after an edit is %+v", got)
	}
	after, err := os.ReadFile(c.File)
	if err != nil || string(after) != string(before) {
		t.Errorf("the fixture has changed (%v)", err)
	}
}
