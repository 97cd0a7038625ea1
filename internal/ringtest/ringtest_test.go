package ringtest

import (
	"os"
	"testing"
)

// The fixtures are worth what their JSON is worth: it must agree with the
// header that stands in the file.
func TestCasesAgreeWithTheirFiles(t *testing.T) {
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
			t.Errorf("%s: header %+v, its JSON says %+v", c.Name, h, want)
		}
		if pending := (c.WritePos - c.ReadPos) & c.Mask; c.Readable() && pending != uint64(len(c.Pending)) {
			t.Errorf("%s: %d pending by its positions, %d in its JSON", c.Name, pending, len(c.Pending))
		}
	}
}

func TestEditAndCopyLeaveTheFixture(t *testing.T) {
	c := Find(t, "v1.4.0/full_cap8")
	before, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
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
